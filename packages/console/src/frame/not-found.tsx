import type { JSX } from "preact";
import { PageView } from "../parts/page.tsx";
import { hrefOf } from "../state/route-state.ts";
import { t } from "../text/text.ts";

export function NotFound(): JSX.Element {
  return (
    <PageView title={t("app.not_found")}>
      <div class="empty">
        <p>{t("app.not_found.text", { path: location.pathname })}</p>
        <a href={hrefOf("")}>{t("app.home")}</a>
      </div>
    </PageView>
  );
}
