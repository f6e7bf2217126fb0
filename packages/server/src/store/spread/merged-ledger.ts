import {
  type LedgerFindings,
  type LedgerPage,
  type LedgerPlace,
  MAX_FOUND,
} from "@idmint/core/server";

/** What several databases have of one id. Versions of a tag go on where it moves, so they compare. */
export function mergedFindings(all: readonly LedgerFindings[]): LedgerFindings {
  const rows = all
    .flatMap((one) => one.rows)
    .toSorted((a, b) => Number(b.version - a.version) || Number(b.sequence - a.sequence));
  const forgotten = all.reduce((most, one) => (one.forgotten > most ? one.forgotten : most), 0n);
  return { rows: rows.slice(0, MAX_FOUND), forgotten };
}

/** One database after the other; a page is of one of them. */
export async function pageOfLedger(
  names: readonly string[],
  after: LedgerPlace | undefined,
  read: (name: string) => Promise<LedgerPage>,
): Promise<LedgerPage> {
  const name = after?.database ?? names[0] ?? "";
  const page = await read(name);
  if (page.next !== undefined) return { ...page, next: { ...page.next, database: name } };
  const following = names[names.indexOf(name) + 1];
  return {
    ...page,
    next: following === undefined ? undefined : { database: following, position: 0n },
  };
}
