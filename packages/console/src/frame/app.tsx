import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Toasts } from "../parts/toasts.tsx";
import type { Page } from "../pages/page.ts";
import { PAGES } from "../pages/pages.ts";
import { route } from "../state/location.ts";
import { mustSignIn } from "../state/session.ts";
import { useAccess } from "./access.ts";
import { Banner } from "./banner.tsx";
import { Header } from "./header.tsx";
import { Menu } from "./menu.tsx";
import { NotFound } from "./not-found.tsx";
import { SignIn } from "./sign-in.tsx";
import { t } from "../text/text.ts";

/** The frame around every page. */
export function App(): JSX.Element {
  useAccess();
  const { page: path, params, query } = route.value;
  const page = PAGES.find((one) => one.path === path);
  const isKnown = !mustSignIn.value;
  useEffect(() => scrollTo(0, 0), [path]);
  return (
    <>
      <a class="skip" href="#content">
        {t("app.skip")}
      </a>
      <Header />
      <Banner />
      <div class="frame">
        {isKnown && <Menu current={page?.under ?? path} />}
        <main id="content" tabindex={-1}>
          {isKnown ? <View page={page} params={params} query={query} /> : <SignIn />}
        </main>
      </div>
      <Toasts />
    </>
  );
}

/** A view begins anew for another object of the same page. */
function View({
  page,
  params,
  query,
}: {
  readonly page: Page | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}): JSX.Element {
  if (page === undefined) return <NotFound />;
  const Shown = page.view;
  return (
    <Shown key={[page.path, ...Object.values(params)].join("\n")} params={params} query={query} />
  );
}
