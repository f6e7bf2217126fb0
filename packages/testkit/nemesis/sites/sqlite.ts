import { linkSync, mkdtempSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { COMMON } from "../tags.ts";
import { until } from "../../src/fleet/until.ts";
import { failDisk, mayTrace } from "../faults/disk.ts";
import type { Stage, StoreFault } from "./site.ts";

/** A server that is frozen may hold the lock. */
const LOCK_MS = 60_000;

/** For one server the disk is full, or fails. */
function disk(how: "EIO" | "ENOSPC"): StoreFault {
  return (site, dice) =>
    site.away(how, async () => {
      const { server } = dice.pick(site.servers.filter((its) => its.server.listens));
      await failDisk(server.process.pid ?? 0, how, dice.int(500, 3_000));
    });
}

/** Two servers on one SQLite file. */
export function sqliteStage(): Stage {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-nemesis-"));
  const file = path.join(folder, "idmint.db");
  const storeUrl = `sqlite:${file}`;
  return {
    name: "sqlite",
    storeUrl,
    servers: 2,
    hasLedger: true,
    ports: [],
    urlBy: () => storeUrl,
    env: {},
    tags: COMMON,
    faults: {
      ...(mayTrace ? { "full-disk": disk("ENOSPC"), "failing-disk": disk("EIO") } : {}),
      // As a backup by hard links does: servers refuse until the other name is gone.
      "second-name": (site, dice) =>
        site.away("second-name", async () => {
          linkSync(file, `${file}.other`);
          await pause(dice.int(500, 2_000));
          unlinkSync(`${file}.other`);
        }),
      // Somebody else's transaction, for shorter and longer than a server waits.
      locked: (site, dice) =>
        site.away("locked", async () => {
          // Waiting for its turn would stop this process.
          const database = new DatabaseSync(file, { timeout: 0 });
          const isBegun = (): true => (database.exec("BEGIN IMMEDIATE"), true);
          await until("the file is locked", isBegun, { withinMs: LOCK_MS, everyMs: 1 });
          await pause(dice.int(300, 3_000));
          database.exec("ROLLBACK");
          database.close();
        }),
    },
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  };
}
