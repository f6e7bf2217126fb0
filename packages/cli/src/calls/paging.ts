import { plain } from "../process/plain.ts";
import { type Command, Option } from "commander";
import type { Io } from "../process/io.ts";
import { smallNumber } from "../flags/parse.ts";

/** Most items of one request. */
const PAGE_SIZE = 1_000;

/** Most empty pages in a row: as many as the longest search of the audit trail takes. */
const MAX_EMPTY = 2_000;

/** How much a list command shows. */
export interface PageFlags {
  readonly limit?: number;
  readonly pageToken?: string;
}

/** Items up to the limit, and the token to go on with, which is empty at the end. */
interface Listed<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string;
}

/** Adds `--limit` and `--page-token` to a command that lists `items`, such as "tags". */
export function addPageOptions(
  command: Command,
  items: string,
  { max, goOn = "continue where a list ended" }: { readonly max: number; readonly goOn?: string },
): Command {
  const limit = `most ${items} to list, 1 to ${max} (default ${PAGE_SIZE})`;
  return command
    .addOption(
      new Option("--limit <count>", limit).argParser(smallNumber("--limit", { min: 1, max })),
    )
    .addOption(new Option("--page-token <token>", goOn));
}

/** Asks for pages until the limit or the end. */
export async function listPages<Item>(
  { limit = PAGE_SIZE, pageToken = "" }: PageFlags,
  ask: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<Listed<Item>>,
): Promise<Listed<Item>> {
  const items: Item[] = [];
  let token = pageToken;
  let empty = 0;
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - items.length);
    const page = await ask({ pageSize, pageToken: token });
    // A page may be empty and not the last one, but a server that answers nothing else would be asked for ever.
    empty = page.items.length === 0 ? empty + 1 : 0;
    if (empty > MAX_EMPTY) return { items, nextPageToken: "" };
    items.push(...page.items);
    token = page.nextPageToken;
  } while (token !== "" && items.length < limit);
  return { items, nextPageToken: token };
}

/** Tells people, but not pipes, that the list is longer. */
export function tellOfMore(io: Io, items: string, nextPageToken: string): void {
  if (nextPageToken !== "") {
    io.err(`idmint: there are more ${items}: --page-token ${plain(nextPageToken)}\n`);
  }
}
