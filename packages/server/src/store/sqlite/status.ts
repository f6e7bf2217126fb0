import { statfsSync } from "node:fs";
import path from "node:path";
import { NEVER_STOPPED } from "@idmint/core/server";
import type { SqliteConfig } from "../shared/config.ts";
import { schemaStanding } from "../shared/migration.ts";
import { stoppedTimeOf } from "../shared/issuing.ts";
import {
  NO_SCHEMA,
  refusedTagsText,
  type StoreFinding,
  type StoreStatus,
} from "../shared/status.ts";
import { tagsFromRows } from "../shared/tag-row.ts";
import { monotonicMs, type Transaction } from "./file/connection.ts";
import { Database } from "./file/database.ts";
import { lookAtFiles } from "./file/files.ts";
import { readStoreRow } from "./file/identity.ts";
import { locate } from "./file/location.ts";
import { migrations } from "./migrations/index.ts";
import { deadlineOf, unsafePlace } from "./open.ts";
import { pagesOfTags } from "./tags.ts";
import { appliedMigrations } from "./schema.ts";

/** With less than this on its disk a store may take no write; in bytes. */
const LEAST_ROOM = 65_536;

function roomFindings(file: string): readonly StoreFinding[] {
  const folder = path.dirname(file);
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= LEAST_ROOM) return [];
  const found = `the disk that the store lies on is full, with less than 64 KiB left: ${folder}`;
  return [{ name: "full", isFatal: true, found, fix: "make room on it" }];
}

function refusedTags(transaction: Transaction): string {
  const names: string[] = [];
  for (const page of pagesOfTags(transaction)) {
    names.push(...tagsFromRows(page).unreadable.map(({ tag }) => tag));
  }
  return refusedTagsText(names, names.length, "whose rows cannot be read");
}

/**
 * Looks at a file without changing it, also one that a server would refuse. One with several names is not looked at: what
 * was written last may lie beside another of them.
 */
export function status(given: SqliteConfig): StoreStatus {
  const config = locate(given);
  const database = new Database(config.path);
  const deadlineMs = monotonicMs() + deadlineOf(config);
  const findings = roomFindings(config.path);
  const common = {
    backend: config.backend,
    presentIdentity: lookAtFiles(config.path)?.identity ?? "",
    standbys: "",
    unsafe: [...unsafePlace(config.path).keys()],
    ...(findings.length === 0 ? {} : { findings }),
    // The machine's, like that of whoever asks.
    timeMs: undefined,
  };
  try {
    const applied = database.raw(deadlineMs, (transaction) => appliedMigrations(transaction));
    const schema = schemaStanding(migrations, applied);
    if (applied.length === 0) return { ...NO_SCHEMA, ...common, ...schema };
    return database.read(deadlineMs, (transaction, fenced) => {
      const store = readStoreRow(transaction);
      return {
        ...common,
        ...schema,
        storeId: store?.storeId ?? "",
        incarnation: store?.incarnation ?? "",
        revision: store?.revision ?? 0n,
        stoppedTime: stoppedTimeOf(store?.issuing ?? NEVER_STOPPED),
        tags: Number(transaction.get("SELECT count(*) AS tags FROM tag")?.["tags"]),
        acceptedIdentity: store?.identity ?? "",
        fenced,
        refusedTags: refusedTags(transaction),
      };
    });
  } finally {
    database.close();
  }
}
