import type { JSX } from "preact";
import { route } from "../state/location.ts";
import { hrefOf } from "../state/route-state.ts";
import { t } from "../text/text.ts";

interface PagerProps {
  /** What is paged, for those who do not see it. */
  readonly label: string;
  /** The `page` of the URL's query; empty on the first page. */
  readonly page: string;
  /** The token of the next page; empty on the last. */
  readonly next: string;
}

/** Links between the pages of a list. The browser's "back" leads to the page before. */
export function Pager({ label, page, next }: PagerProps): JSX.Element | null {
  if (page === "" && next === "") return null;
  const { page: path = "", params, query } = route.value;
  const to = (token: string): string => hrefOf(path, params, { ...query, page: token });
  return (
    <nav class="pager" aria-label={label}>
      {page !== "" && (
        <a class="button" href={to("")}>
          {t("common.first")}
        </a>
      )}
      {next !== "" && (
        <a class="button" href={to(next)}>
          {t("common.next")}
        </a>
      )}
    </nav>
  );
}
