// Faults that are written into histories, to see that the judges notice them.
import { appendFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { nowUs } from "../journal.ts";
import { type AnyRow, merged } from "./rows.ts";
import type { Case } from "./judge.ts";

interface Plant {
  /** Where the verdict has to show it. */
  readonly shows: "aboveFloor" | "ledger" | "outage" | "order" | "refusals" | "repeats";
  /** What it appends to histories is taken out by others; the answer undoes the rest. */
  readonly run: (its: Case) => (() => void) | void;
}

/** A row that a caller was answered, of a tag. */
function someRow({ histories }: Case, isWanted: (row: AnyRow) => boolean): AnyRow {
  for (const { row } of merged(histories)) if (isWanted(row)) return row;
  throw new Error("no such row to plant a fault with");
}

function lastHistory({ histories }: Case, kind: string): string {
  const found = histories.findLast((history) => history.includes(`/${kind}-`));
  if (found === undefined) throw new Error(`no history of ${kind}`);
  return found;
}

function append(history: string, part: string, row: object): void {
  appendFileSync(`${history}${part}.ndjson`, `${JSON.stringify(row)}\n`);
}

/** An answer that came just now, after all others. */
function answer(tag: string, more: object): object {
  const [from, to] = [nowUs(), nowUs() + 1];
  return { tag, who: "planted", time: new Date().toISOString(), from, to, ...more };
}

/** By class. */
export const PLANTS: Readonly<Record<string, Plant>> = {
  repeat: {
    shows: "repeats",
    run: (its) => {
      const { tag, ...row } = someRow(its, (each) => "id" in each && each.tag === "orders");
      append(lastHistory(its, "raw"), "", answer(tag, { id: "id" in row ? row.id : "" }));
    },
  },
  uuid: {
    shows: "repeats",
    run: (its) => {
      const row = someRow(its, (each) => "uuid" in each);
      const uuid = "uuid" in row ? row.uuid : "";
      append(lastHistory(its, "raw"), ".uuids", answer(row.tag, { uuid }));
    },
  },
  // Nobody has this id, since the tag begins at 1,001.
  strict: {
    shows: "order",
    run: (its) => append(lastHistory(its, "raw"), "", answer("bills", { id: "7" })),
  },
  client: {
    shows: "order",
    run: (its) => {
      const history = lastHistory(its, "sdk");
      const row = someRow({ ...its, histories: [history] }, (each) => each.tag === "ordered");
      append(history, "", answer("ordered", { id: "id" in row ? row.id : "" }));
    },
  },
  floor: {
    shows: "aboveFloor",
    run: (its) => append(lastHistory(its, "raw"), "", answer("orders", { id: String(2n ** 60n) })),
  },
  // Another server was granted the same ids, by the ledger of a SQLite file.
  ledger: {
    shows: "ledger",
    run: ({ storeUrl }) => {
      const columns =
        "tag, entry, width, first_id, last_id, version, epoch, sequence, instance, principal, at_ms, stored_at_ms";
      const write = (sql: string): void => {
        const database = new DatabaseSync(storeUrl.replace("sqlite:", ""), { timeout: 10_000 });
        database.exec(sql);
        database.close();
      };
      write(
        `INSERT INTO ledger (node_id, server, ${columns})
          SELECT 'planted', 'planted', ${columns} FROM ledger WHERE tag = 'bulk' AND entry = 'grant' LIMIT 1`,
      );
      return () => write("DELETE FROM ledger WHERE server = 'planted'");
    },
  },
  refusal: {
    shows: "refusals",
    run: (its) => {
      const refused = "INTERNAL INTERNAL";
      append(lastHistory(its, "raw"), ".refusals", answer("orders", { refused, message: "" }));
    },
  },
  silence: {
    shows: "outage",
    run: (its) => {
      const history = lastHistory(its, "sdk");
      const refused = "UNAVAILABLE SEGMENT_NOT_READY";
      for (let second = 0; second < 60; second += 5) {
        const from = nowUs() + second * 1_000_000;
        const times = { from, to: from + 5_000_000 };
        append(history, ".refusals", { ...answer("orders", { refused, message: "" }), ...times });
      }
    },
  },
};
