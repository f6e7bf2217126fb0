// For each alert, the fault that it is for, as it comes about in the world.
import { setTimeout as pause } from "node:timers/promises";
import path from "node:path";
import { Child } from "../../src/fleet/child.ts";
import type { FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import type { Stage } from "./stage.ts";

/** A fault. What it answers is what somebody does beside the commands of the runbook: it ends the fault. */
export interface AlertCase {
  readonly fault: (stage: Stage, tag: string) => Promise<() => Promise<void> | void>;
  /** Labels of the alert, besides the tag. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Number of the server that is not well. Default: 3, and commands ask the first. */
  readonly server?: number;
  /** What the tag is called that it is about, each time another one. Default: what the runbook calls orders. */
  readonly newTag?: string;
  /** What is done before a command of the runbook that this fits. */
  readonly before?: readonly [RegExp, (stage: Stage) => Promise<void>];
}

const STORM = path.resolve(import.meta.dirname, "../../bench/lib/storm-load.ts");
/** More than waits for a database. */
const LEDGER_ROWS = 25_000;

const killStore = async ({ parts: { postgres } }: Stage): Promise<() => Promise<void>> => {
  await postgres.stop("kill");
  return () => postgres.start();
};

/** By the name of the alert, in an order in which none disturbs the next. */
export const CASES: Readonly<Record<string, AlertCase>> = {
  IdmintRefusals: {
    labels: { reason: "TAG_PAUSED" },
    fault: async (stage) => {
      await stage.cli("tag", "pause", "orders");
      return () => undefined;
    },
  },
  IdmintServerDown: {
    fault: async (stage) => {
      await stage.server(3).kill();
      return () => stage.server(3).start();
    },
  },
  IdmintTooFewServing: {
    fault: async (stage) => {
      const lost = [stage.server(2), stage.server(3)];
      await Promise.all(lost.map((server) => server.kill()));
      return async () => void (await Promise.all(lost.map((server) => server.start())));
    },
  },
  IdmintServerNotReady: {
    server: 2,
    fault: async (stage) => {
      await stage.cli("node", "drain", "host-2", "--yes");
      return () => undefined;
    },
  },
  IdmintSegmentsLow: {
    newTag: "narrow",
    fault: async (stage, tag) => {
      await stage.server(1).api.createTag({ name: tag, min: 1_000, max: 1_000 });
      return stage.keep(takes(tag, 10));
    },
  },
  IdmintTagRunsOut: {
    newTag: "month",
    labels: { limit: "CEILING" },
    fault: async (stage, tag) => uses(stage, tag, 200),
  },
  IdmintTagRunsOutSoon: {
    newTag: "week",
    labels: { limit: "CEILING" },
    fault: async (stage, tag) => uses(stage, tag, 5_000),
  },
  IdmintEventLoopSlow: {
    fault: async (stage) => {
      const { process } = stage.server(3);
      // What a machine does to a process that it gives a fifth of its time.
      const timer = setInterval(() => {
        process.signal("SIGSTOP");
        setTimeout(() => process.signal("SIGCONT"), 240);
      }, 300);
      return async () => {
        clearInterval(timer);
        await pause(300);
        process.signal("SIGCONT");
      };
    },
  },
  IdmintOverloaded: {
    fault: async (stage) => {
      const storms = [1, 2, 3].map((at) => storm(stage.server(3), `127.0.0.${at}`));
      return async () => void (await Promise.all(storms.map((child) => child.kill())));
    },
  },
  IdmintRedisDown: {
    fault: async ({ parts: { redis } }) => {
      await redis.kill();
      return () => redis.start();
    },
  },
  IdmintTicketDatabaseDown: {
    labels: { database: "a" },
    fault: async ({ parts: { tickets } }) => {
      await tickets.stop("kill");
      return () => tickets.start();
    },
  },
  IdmintStoreUnavailable: { fault: killStore },
  IdmintIssuingEndsSoon: { fault: killStore },
  IdmintCallersWait: {
    newTag: "few",
    fault: async (stage, tag) => {
      const { postgres } = stage.parts;
      await stage.server(1).api.createTag({ name: tag, min: 100, max: 100 });
      const stop = stage.keep(takes(tag, 10));
      await until("its ids flow", () => stage.server(1).api.id(tag));
      postgres.freeze();
      return () => {
        postgres.thaw();
        // Whoever waited is answered, and nobody asks for more of so few.
        stop();
      };
    },
  },
  IdmintReservationLow: {
    labels: { tag: "trace" },
    fault: async ({ parts: { postgres } }) => {
      postgres.freeze();
      return () => postgres.thaw();
    },
  },
  IdmintEpochsDiffer: {
    server: 2,
    labels: { tag: "orders" },
    fault: async (stage) => {
      stage.parts.way.cut();
      const { floor } = await stage.server(1).api.getTag("orders");
      await stage.cli("tag", "advance", "orders", "--floor", String(floor + 1_000_000n), "--yes");
      return () => stage.parts.way.mend();
    },
  },
  IdmintLedgerLosesRows: {
    fault: async (stage) => {
      const mend = await killStore(stage);
      const { api } = stage.server(1);
      const ask = api.ids.allocateSegment.bind(api.ids);
      const request = { tag: "orders", count: 1, after: 0n, instance: "till-1" };
      let left = LEDGER_ROWS;
      const till = async (): Promise<void> => {
        while (left-- > 0) await api.send(ask, request, 30_000);
      };
      try {
        await Promise.all(Array.from({ length: 100 }, till));
      } catch (thrown) {
        await mend();
        throw thrown;
      }
      return mend;
    },
  },
  IdmintClockOff: {
    fault: async ({ parts: { clock } }) => {
      clock.set(2_500);
      return () => clock.set(0);
    },
  },
  IdmintAlarmsNotDelivered: {
    fault: async ({ parts: { receiver, redis } }) => {
      receiver.isRefusing = true;
      await redis.kill();
      // Longer than `alarm.after`, so that its loss is an alarm.
      await pause(4_000);
      await redis.start();
      return () => {
        receiver.isRefusing = false;
      };
    },
  },
  IdmintStoreWentBack: {
    fault: async (stage) => {
      const { postgres } = stage.parts;
      await postgres.stop("fast");
      const restore = postgres.backUp();
      await postgres.start();
      await until(
        "there is a later grant",
        () => stage.cli("tag", "create", "later").catch(() => false),
        {
          withinMs: 60_000,
        },
      );
      const { floor } = await stage.server(1).api.getTag("orders");
      await stage.cli("tag", "advance", "orders", "--floor", String(floor + 1_000n), "--yes");
      await postgres.stop("kill");
      restore();
      await postgres.start();
      return async () =>
        void (await Promise.all(stage.parts.fleet.servers.map((each) => each.start())));
    },
    before: [
      /store accept/,
      async ({ parts: { fleet } }) =>
        void (await Promise.all(fleet.servers.map((each) => each.stop()))),
    ],
  },
};

/** Takes so many ids of a tag in one call. */
function takes(tag: string, count: number) {
  return ({ api }: FleetServer): Promise<unknown> => api.generateIds({ tag, count, asList: false });
}

/** Takes ids of a tag of 32 bits, and looks all the time when it runs out, which servers do each minute. */
async function uses(stage: Stage, tag: string, count: number): Promise<() => void> {
  const { api } = stage.server(1);
  await api.createTag({ name: tag, ceiling: 2n ** 31n - 1n, min: count, max: count * 10 });
  const look = api.tags.getTagCapacity.bind(api.tags);
  const stops = [
    stage.keep(takes(tag, count), [stage.server(1)]),
    stage.keep(() => api.send(look, { name: tag }), [stage.server(1)]),
  ];
  return () => {
    // Of a tag that is paused, callers have turned to the next one. Servers go on looking.
    stops[0]?.();
  };
}

/** Begins to ask for more than any server answers, from an address of this machine. */
function storm({ address }: FleetServer, from: string): Child {
  const load = { address, from, tag: "orders", connections: 2, streams: 1_024 };
  const rate = { callsPerSecond: 40_000, seconds: 600, settleSeconds: 0 };
  return new Child(STORM, [JSON.stringify({ ...load, ...rate })], { name: `storm from ${from}` });
}
