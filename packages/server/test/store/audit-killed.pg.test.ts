import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { builtOf } from "@idmint/testkit";
import type { AuditEvent, Store, Tag } from "@idmint/core/server";
import { auditOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import type { StoreConfig } from "../../src/store/open-store.ts";
import { until } from "./children.ts";
import { postgresHarness, sqliteHarness } from "./harness.ts";

const ROUNDS = process.env["IDMINT_LONG"] === "1" ? 40 : 3;
const TAGS = ["a", "b", "c"];

async function child(config: StoreConfig, name: string): Promise<ChildProcess> {
  const file = builtOf("packages/server/test/store/audit-child.ts");
  const args = ["-C", "idmint-source", file, JSON.stringify(config), name];
  const started = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  await once(started.stdout as NodeJS.ReadableStream, "data");
  return started;
}

/** Tags and rows of one moment: PostgreSQL may end a transaction after its caller was killed. */
async function settled(
  store: Store,
): Promise<{ tags: readonly Tag[]; events: readonly AuditEvent[] }> {
  for (;;) {
    const before = await store.getTags(TAGS);
    const events = await auditOf(store);
    const tags = await store.getTags(TAGS);
    if (tags.every(({ floor }, at) => floor === before[at]?.floor)) return { tags, events };
  }
}

for (const [name, makeStore] of [
  ["sqlite", sqliteHarness],
  ["postgres", postgresHarness],
] as const) {
  test(`${name}: a process that is killed leaves no change without its row, and no row of none`, async () => {
    const harness = await makeStore();
    const store = await harness.open();
    try {
      for (const tag of TAGS) await store.createTag(settingsOf(tag));
      const rows = async () => auditOf(store);
      for (let round = 0; round < ROUNDS; round++) {
        const before = (await rows()).length;
        const children = [
          await child(harness.config, `${round}x`),
          await child(harness.config, `${round}y`),
        ];
        // At any moment of a change that comes after these.
        await until(async () => (await rows()).length >= before + 20);
        for (const one of children) {
          one.kill("SIGKILL");
          await once(one, "exit");
        }
        const { tags, events } = await settled(store);
        for (const { floor, name: tag } of tags) {
          const its = events.filter(({ resource }) => resource === `tag/${tag}`);
          const floors = its.map(({ after }) =>
            BigInt((JSON.parse(after) as { floor: string }).floor),
          );
          // Each raise is by one: the floor tells how many there were.
          const expected = Array.from({ length: Number(floor) }, (_, at) => floor - BigInt(at));
          expect(floors.toSorted((a, b) => (a < b ? 1 : -1))).toEqual(expected);
        }
      }
    } finally {
      await store.close();
      await harness.remove();
    }
  }, 60_000);
}
