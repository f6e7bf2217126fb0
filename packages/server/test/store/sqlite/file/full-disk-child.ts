// Fills the disk that a folder lies on under a store in it, and writes to standard output what happens to its witness, or to
// grants of two processes that share it while its -wal is short, or what polls and doctor say while nothing can be written and
// when there is room again.
import { closeSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openDatabase } from "../../../../src/store/sqlite/open.ts";
import { migrate, status } from "../../../../src/store/sqlite/backend.ts";
import { changes } from "../../../../src/store/sqlite/changes.ts";
import { monotonicMs } from "../../../../src/store/sqlite/file/connection.ts";
import type { Database } from "../../../../src/store/sqlite/file/database.ts";
import { grant } from "../../../../src/store/sqlite/grant.ts";
import { createTag } from "../../../../src/store/sqlite/tags.ts";
import { settingsOf } from "@idmint/testkit/store-suite";

const [folder = "", mode = ""] = process.argv.slice(2);
const config = {
  backend: "sqlite" as const,
  path: path.join(folder, "store.sqlite"),
  create: true,
  allowUnsafe: [],
};
const wish = { tag: "t", kind: "segment" as const, count: 10, minCount: 1, after: 0n };

function grants(database: Database, count: number): void {
  for (let i = 0; i < count; i++) {
    const [one] = grant(database, monotonicMs() + 5_000, [{ ...wish, seenVersion: 0n }]);
    if (one?.outcome !== "granted") throw new Error(JSON.stringify(one));
  }
}

function fill(name: string): void {
  const file = openSync(name, "w");
  try {
    for (const size of [65_536, 1]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    }
  } finally {
    closeSync(file);
  }
}

/** What becomes of grants, over connections by turns: how often each answer came. */
function answersOf(databases: readonly Database[], count: number): string {
  const answers = new Map<string, number>();
  for (let i = 0; i < count; i++) {
    let answer = "granted";
    try {
      grants(databases[i % databases.length] as Database, 1);
    } catch (error) {
      answer = (error as Error).message;
    }
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  return JSON.stringify(Object.fromEntries(answers));
}

const witness = (): bigint => statSync(`${config.path}.witness`, { bigint: true }).ino;
migrate(config, { dryRun: false });
const { database } = openDatabase(config);
createTag(database, monotonicMs() + 5_000, settingsOf("t"), undefined);
const ballast = path.join(folder, "ballast");
/** What a poll says of writing, and `idmint store status`. */
function said(database: Database): string {
  const node = { id: "n", instance: "n", address: "", version: "1", zone: "", startedAtMs: 0 };
  const renewal = {
    node: { ...node, maxOfflineMs: 60_000 },
    count: 1n,
    incarnation: "",
    obeyed: 0n,
    traffic: 0n,
    isProved: true,
  };
  const query = { since: 0n, watched: [], limit: 10, renewal };
  const { refusesWrites, warning, fenced, parts } = changes(database, monotonicMs() + 5_000, query);
  const found = status(config).findings?.map(({ name }) => name) ?? [];
  return JSON.stringify({ refusesWrites, warning, fenced, isRenewed: parts[0]?.isRenewed, found });
}

if (mode === "poll") {
  grants(database, 5);
  const before = said(database);
  const reader = new DatabaseSync(config.path);
  // As long as somebody reads what the -wal has, it is not begun anew.
  reader.exec("BEGIN");
  reader.prepare("SELECT name FROM tag").all();
  fill(ballast);
  const full = said(database);
  reader.close();
  rmSync(ballast);
  writeSync(1, `[${before},${full},${said(database)}]\n`);
} else if (mode === "") {
  // The -wal grows until it is written from its beginning again: then a commit needs no room.
  grants(database, 600);
  fill(ballast);
  const before = witness();
  const later = openDatabase(config).database;
  grants(later, 50);
  grants(database, 50);
  writeSync(1, `grants go on; the witness ${witness() === before ? "stays" : "took its turn"}\n`);
} else {
  const other = openDatabase(config).database;
  // One that only rests keeps SQLite from removing the -wal when the others close it.
  grants(openDatabase(config).database, 20);
  fill(ballast);
  writeSync(1, `${answersOf([database, other], 200)}\n`);
}
