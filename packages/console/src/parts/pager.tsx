import type { JSX } from "preact";
import { route } from "../state/location.ts";
import { hrefOf } from "../state/route-state.ts";
import { t } from "../text/text.ts";

interface PagerProps {
  /** The `page` of the URL's query; empty on the first page. */
  readonly page: string;
  /** The token of the next page; empty on the last. */
  readonly next: string;
}

/** Links between the pages of a list. The browser's "back" leads to the page before. */
export function Pager({ page, next }: PagerProps): JSX.Element | null {
  if (page === "" && next === "") return null;
  const { page: path = "", params, query } = route.value;
  const to = (token: string): string => hrefOf(path, params, { ...query, page: token });
  return (
    <p class="pager">
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
    </p>
  );
}
