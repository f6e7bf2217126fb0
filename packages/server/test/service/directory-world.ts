import { MAX_ID } from "@idmint/core";
import { type TagSettings, VersionGuard } from "@idmint/core/server";
import { FakeTime, MemoryStore, MemoryTicketDatabase } from "@idmint/testkit";
import { realSystem } from "../../src/main/system.ts";
import { createTextMakers } from "../../src/main/text-ids.ts";
import { createTickets } from "../../src/service/kinds/ticket/tickets.ts";
import type { Patience } from "../../src/service/call.ts";
import { createCounters } from "../../src/service/counters.ts";
import { Directory } from "../../src/service/issue/directory.ts";
import { Grants } from "../../src/service/upstream/grants.ts";
import { IdService } from "../../src/service/issue/ids.ts";
import { Lookup } from "../../src/service/upstream/lookup.ts";
import { ReleaseTokens } from "../../src/service/issue/release-tokens.ts";
import { sourceMaker } from "../../src/service/kinds/sources.ts";

export const SETTINGS: TagSettings = {
  name: "orders",
  description: "",
  order: "UNORDERED",
  ceiling: MAX_ID,
  kind: { kind: "segment", start: 1n, min: 10, max: 10, holdForMs: 1_000, maxAgeMs: 1_000 },
};

export const SEQUENCE: TagSettings = {
  ...SETTINGS,
  order: "STRICT",
  kind: { kind: "sequence", start: 1n, periods: undefined, redis: undefined },
};

function snowflake(): never {
  throw new Error("there is no snowflake tag");
}

/** A server that was never cut off. */
const PRESENT = { refusalOf: () => undefined, noteHoldFor: () => undefined };

/** A directory on a store in memory, whose answers to lookups the test may hold back. */
export function setUp(store = new MemoryStore(), maxTags = 10) {
  const time = new FakeTime();
  const guard = new VersionGuard();
  const counters = createCounters();
  const common = { store, guard, clock: time, timers: time, counters };
  const shared = {
    ...common,
    storeTimeoutMs: 1_000,
    afterTurn: queueMicrotask,
    emit: () => undefined,
  };
  const grants = new Grants({ ...shared, onWentBack: () => undefined, onBelow: () => undefined });
  const lookup = new Lookup({ ...shared, onTags: (tags) => directory.admit(tags) });
  const makers = createTextMakers(realSystem);
  const system = { ...realSystem, clock: time, timers: time, random: () => 0.5 };
  const tickets = createTickets(
    [new MemoryTicketDatabase("a")],
    { system, counters, emit: shared.emit },
    { prefetchShare: 0.1, maxWaiters: 10, timeoutMs: 1_000 },
  );
  const makeSource = sourceMaker(
    { ...shared, grants, makers, snowflake, ticket: tickets.sourceOf, redis: undefined },
    { maxWaiters: 10, maxCount: 100 },
  );
  const texts = { keys: new Map(), offsetAt: () => undefined };
  const ledger = undefined;
  const directory = new Directory(
    { ...shared, grants, ledger, lookup, random: () => 0.5, makeSource, texts, presence: PRESENT },
    { prefetchShare: 0.1, maxWaiters: 10, maxTags, storeTimeoutMs: 1_000 },
  );
  const tokens = new ReleaseTokens(10, realSystem.randomToken);
  const limits = { countAsList: 100, countAsSegments: 1_000 };
  const ids = new IdService({ directory, tokens, limits, ledger, counters });
  const call: Patience = { deadline: 10_000, signal: new AbortController().signal };
  return { time, store, guard, directory, ids, tickets, call };
}

export const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await Promise.resolve();
};
