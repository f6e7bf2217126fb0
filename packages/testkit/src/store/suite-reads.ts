// What a store must do for the calls that STORE_CALLS says only read.
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/core";
import { type Store, STORE_CALLS } from "@idmint/core/server";
import { expect } from "vitest";
import { noteOf } from "./suite-audit.ts";
import { granted, grantedOf, sequenceOf, settingsOf, type Suite } from "./support.ts";
import { snowflakeOf } from "../workers/support.ts";

/** Why a store keeps no ledger. */
const reasonIn = (error: unknown): string => IdmintError.from(error).reason;

/** Each call that reads, as a server makes it. */
const READS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  findInLedger: (store) => store.findInLedger({ tag: "t", id: 1n }).catch(reasonIn),
  getTags: (store) => store.getTags(["t", "s", "nobody"]),
  listAudit: (store) =>
    store.listAudit({ kind: "change", before: undefined, sinceMs: 0, limit: 10 }),
  listLedger: (store) =>
    store.listLedger({ tag: "t", after: undefined, limit: 10 }).catch(reasonIn),
  listPeriods: (store) => store.listPeriods({ tag: "t", before: "", limit: 10 }),
  listTags: (store) => store.listTags({ afterName: "", prefix: "", showDeleted: true, limit: 10 }),
  listWorkers: (store) => store.listWorkers({ tag: "s", after: undefined, limit: 10 }),
  readTokens: (store) => store.readTokens(undefined),
  recentTags: (store) => store.recentTags(10),
};

export function readCases(suite: Suite): void {
  suite("what is read changes nothing, for whoever reads or writes next", async (store) => {
    const named = Object.entries(STORE_CALLS).filter(([, { effect }]) => effect === "read");
    expect(Object.keys(READS)).toEqual(named.map(([name]) => name));
    await store.createTag(settingsOf("t"), { by: noteOf("reads") });
    await store.createTag(snowflakeOf("s", { place: { registry: "STORE" } }));
    const holder = { instance: "a", dataCenter: undefined, reserveAheadMs: 3_000 };
    await store.leaseWorker({ tag: "s", ...holder });
    const looked = async (): Promise<unknown> => {
      const answers = await Promise.all(Object.values(READS).map((read) => read(store)));
      const { nowMs: _, ...changes } = await store.changes({ since: 0n, watched: [], limit: 10 });
      return { answers, changes };
    };
    const first = await looked();
    expect(await looked()).toEqual(first);
  });

  suite("the tags whose rows were written last are told first", async (store, open) => {
    const other = await open();
    for (const name of ["a", "b", "c", "d"]) await store.createTag(settingsOf(name));
    await store.createTag(sequenceOf("e"));
    // Their rows say nothing of use, or nobody may use them.
    await store.createTag(snowflakeOf("s", { place: { registry: "STORE" } }));
    await store.createTag(settingsOf("gone"));
    await store.setTagState("gone", "DELETED", undefined);
    for (const name of ["d", "a", "c", "b"]) {
      // Clocks of stores may tell milliseconds only.
      await pause(2);
      await granted(other, name);
    }
    await pause(2);
    await grantedOf(store, "e");
    const inOrder = ["e", "b", "c", "a", "d"];
    const names = await store.recentTags(1_000);
    const isOne = store.partsOf === undefined;
    expect(isOne ? names : names.toSorted()).toEqual(isOne ? inOrder : inOrder.toSorted());
    const two = await store.recentTags(2);
    expect(isOne ? two : two.length).toEqual(isOne ? ["e", "b"] : 2);
  });
}
