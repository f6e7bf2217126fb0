import { type Command, Option } from "commander";
import type { Io } from "./io.ts";
import { smallNumber } from "./parse.ts";

/** Most items of one request. */
const PAGE_SIZE = 1_000;

/** What a list command is told of how much to show. */
export interface PageFlags {
  readonly limit?: number;
  readonly pageToken?: string;
}

/** Items up to the limit, and where to go on; empty at the end. */
interface Listed<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string;
}

/** `--limit` and `--page-token` of a command that lists `items`, as "tags". */
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

/** Pages until the limit or the end. */
export async function listPages<Item>(
  { limit = PAGE_SIZE, pageToken = "" }: PageFlags,
  ask: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<Listed<Item>>,
): Promise<Listed<Item>> {
  const items: Item[] = [];
  let token = pageToken;
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - items.length);
    const page = await ask({ pageSize, pageToken: token });
    // An empty page with a token would go on for ever.
    if (page.items.length === 0) return { items, nextPageToken: "" };
    items.push(...page.items);
    token = page.nextPageToken;
  } while (token !== "" && items.length < limit);
  return { items, nextPageToken: token };
}

/** Tells people, and not pipes, that a list was longer. */
export function tellOfMore(io: Io, items: string, nextPageToken: string): void {
  if (nextPageToken !== "") {
    io.err(`idmint: there are more ${items}: --page-token ${nextPageToken}\n`);
  }
}
