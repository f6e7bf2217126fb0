// An operator's process: moves a tag to and fro until it is killed, and writes a line for each step and each move.
import { writeSync } from "node:fs";
import type { PostgresConfig } from "../../../src/store/open-store.ts";
import { open as openPostgres, type PostgresStore } from "../../../src/store/postgres/store.ts";
import { moveTag } from "../../../src/store/spread/move.ts";

const [configs = "", tag = "", ...targets] = process.argv.slice(2);
const databases = JSON.parse(configs) as readonly (readonly [string, PostgresConfig])[];
const members = databases.map(([name]) => name).toSorted();
const stores = new Map<string, PostgresStore>();
for (const [name, config] of databases) {
  stores.set(name, await openPostgres({ ...config, place: { member: name, members } }));
}
writeSync(1, "open\n");
for (let turn = 0; ; turn++) {
  try {
    const to = targets[turn % targets.length] ?? "";
    const { moved } = await moveTag(stores, tag, to, (step) => writeSync(1, `${step}\n`));
    writeSync(1, moved ? "moved\n" : "there\n");
  } catch (error) {
    writeSync(1, `failed ${String(error)}\n`);
  }
}
