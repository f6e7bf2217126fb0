import type { JSX } from "preact";
import { PAGES } from "../pages/pages.ts";
import { hrefOf } from "../state/route-state.ts";
import { may } from "../state/sign-in.ts";
import { t } from "../text/text.ts";

export function Menu({ current }: { readonly current: string | undefined }): JSX.Element {
  return (
    <nav class="menu" aria-label={t("app.menu")}>
      <ul>
        {PAGES.map(({ path, nav, role }) => {
          if (nav === undefined || (role !== undefined && !may(role))) return null;
          return (
            <li key={path}>
              <a href={hrefOf(path)} aria-current={path === current ? "page" : undefined}>
                {t(nav)}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
