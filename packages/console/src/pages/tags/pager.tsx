import type { JSX } from "preact";
import { Button } from "../../parts/button.tsx";
import { setQuery } from "../../state/location.ts";
import { t } from "../../text/text.ts";

/** Leads to the next page of a list, and back to its first. Where a list is stands in the URL, so "back" leads back. */
export function Pager({
  page,
  next,
}: {
  readonly page: string;
  readonly next: string;
}): JSX.Element | null {
  if (page === "" && next === "") return null;
  return (
    <nav class="pager" aria-label={t("tags.pages")}>
      <Button disabled={page === ""} onClick={() => goToPage("")}>
        {t("common.first")}
      </Button>
      <Button disabled={next === ""} onClick={() => goToPage(next)}>
        {t("common.next")}
      </Button>
    </nav>
  );
}

function goToPage(page: string): void {
  setQuery({ page }, { replace: false });
}
