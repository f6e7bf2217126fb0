// A world of one log, its standbys and their backups, in which everything goes wrong that may: whatever is accepted without an
// operator has all that was answered.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  judgePromotion,
  type PromotionFacts,
} from "../../../../src/store/postgres/hosts/promotion-state.ts";
import { requiredStandbys } from "../../../../src/store/postgres/hosts/standby-names.ts";

/** What is in the log; each entry is a commit. */
type Entry =
  | { readonly type: "grant" }
  | { readonly type: "renewal"; readonly server: number; readonly number: bigint }
  | { readonly type: "record"; readonly standbys: readonly string[] }
  | { readonly type: "change" };

interface Server {
  /** Another one in each life of a server. */
  readonly id: number;
  /** Of its own row, as standbys confirmed it. */
  witnessed: bigint | undefined;
  renewals: bigint;
  revision: bigint;
  /** Grants that it has seen, which its guard would miss; a server that starts again has seen none. */
  seen: Set<number>;
}

const HOSTS = ["b", "c"] as const;
const SETTINGS = ["", "b", "c", "FIRST 2 (b, c)", "ANY 1 (b, c)", "*"];

class World {
  readonly log: Entry[] = [];
  /** How much of the log each standby has. */
  readonly flushed: Record<string, number> = { b: 0, c: 0 };
  /** Base backups: of which host, and how much of the log they have. */
  readonly backups: { host: string; length: number }[] = [];
  readonly servers: Server[] = [0, 1].map(() => freshServer());
  /** Places in the log of grants that were answered to a caller. */
  readonly answered: number[] = [];
  setting = "";

  recordIn(length: number): readonly string[] {
    for (let at = length - 1; at >= 0; at--) {
      const entry = this.log[at];
      if (entry?.type === "record") return entry.standbys;
    }
    return [];
  }

  /** Commits of this session count when the standbys that it finds recorded afterwards have the log so far. */
  isConfirmed(): boolean {
    const names = this.recordIn(this.log.length);
    return names.every((name) => (this.flushed[name] ?? 0) >= this.log.length);
  }

  has(length: number, places: Iterable<number>): boolean {
    for (const place of places) if (place >= length) return false;
    return true;
  }

  /** What server `at` would say of a host with so much of the log, promoted. */
  verdict(host: string, length: number, at: number): ReturnType<typeof judgePromotion> {
    const server = this.servers[at] as Server;
    const own = this.log
      .slice(0, length)
      .filter((entry) => entry.type === "renewal" && entry.server === server.id)
      .at(-1);
    const changes = this.log.slice(0, length).filter(({ type }) => type === "change").length;
    const facts: PromotionFacts = {
      accepted: "7/00000001/5",
      present: "7/00000002/5",
      isOurs: true,
      standbys: this.recordIn(length),
      clusterName: host,
      incarnation: "one",
      revision: BigInt(changes),
      isBehind: !this.has(length, server.seen),
      renewals: own?.type === "renewal" ? own.number : undefined,
    };
    const { witnessed: renewals, revision } = server;
    return judgePromotion(facts, { incarnation: "one", revision, renewals, mayAccept: true });
  }
}

let lives = 0;

function freshServer(): Server {
  return { id: lives++, witnessed: undefined, renewals: 0n, revision: 0n, seen: new Set() };
}

type Step = (world: World) => void;

function poll(at: number, catchesUp: boolean): Step {
  return (world) => {
    const server = world.servers[at] as Server;
    server.renewals++;
    world.log.push({ type: "renewal", server: server.id, number: server.renewals });
    if (catchesUp) for (const host of HOSTS) world.flushed[host] = world.log.length;
    server.revision = BigInt(world.log.filter(({ type }) => type === "change").length);
    if (!world.isConfirmed()) return;
    const isNamed = world.recordIn(world.log.length).length > 0;
    server.witnessed = isNamed ? server.renewals : undefined;
  };
}

function grant(at: number, standbys: readonly string[]): Step {
  return (world) => {
    world.log.push({ type: "grant" });
    // Only so far do these standbys come; a wait that ends for whatever reason is followed by a look of our own.
    for (const host of standbys) world.flushed[host] = world.log.length;
    if (!world.isConfirmed()) return;
    world.answered.push(world.log.length - 1);
    (world.servers[at] as Server).seen.add(world.log.length - 1);
  };
}

function record(standbys: readonly string[]): Step {
  return (world) => {
    const known = world.recordIn(world.log.length);
    const names = requiredStandbys(world.setting);
    if (names.length <= known.length || !known.every((name) => names.includes(name))) return;
    world.log.push({ type: "record", standbys: names });
    for (const host of standbys) world.flushed[host] = world.log.length;
  };
}

const server = fc.constantFrom(0, 1);
const some = fc.subarray([...HOSTS]);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(server, some).map(([at, hosts]) => grant(at, hosts)) },
  { weight: 3, arbitrary: fc.tuple(server, fc.boolean()).map(([at, all]) => poll(at, all)) },
  { weight: 3, arbitrary: some.map(record) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(...SETTINGS).map((setting) => (world: World) => {
      world.setting = setting;
    }),
  },
  { weight: 1, arbitrary: fc.constant((world: World) => world.log.push({ type: "change" })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...HOSTS).map((host) => (world: World) => {
      world.backups.push({ host, length: world.flushed[host] ?? 0 });
    }),
  },
  {
    weight: 1,
    arbitrary: server.map((at) => (world: World) => {
      world.servers[at] = freshServer();
    }),
  },
);

test("whatever standby is accepted without an operator has all that was answered", () => {
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const world = new World();
      for (const take of steps) take(world);
      for (const host of HOSTS) {
        const length = world.flushed[host] ?? 0;
        for (const at of [0, 1]) {
          if (world.verdict(host, length, at) !== "accept") continue;
          accepted++;
          expect(world.has(length, world.answered)).toBe(true);
        }
      }
    }),
    { numRuns: 20_000 },
  );
  // A test that accepts nothing shows nothing.
  expect(accepted).toBeGreaterThan(500);
});

test("a backup is accepted only by a server that has seen nothing newer than it has", () => {
  let objections = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), server, (steps, at) => {
      const world = new World();
      for (const take of steps) take(world);
      // The living server polls on, and all is well.
      poll(at, true)(world);
      for (const { host, length } of world.backups) {
        const verdict = world.verdict(host, length, at);
        expect(verdict).not.toBe("accept");
        if (verdict === "object") objections++;
      }
    }),
    { numRuns: 20_000 },
  );
  expect(objections).toBeGreaterThan(100);
});

const GOOD: PromotionFacts = {
  accepted: "7/0000000A/5",
  present: "7/00000010/5",
  isOurs: true,
  standbys: ["b", "c"],
  clusterName: "B",
  incarnation: "one",
  revision: 9n,
  isBehind: false,
  renewals: 20n,
};
const WITNESS = { incarnation: "one", revision: 9n, renewals: 20n, mayAccept: true };

test("each part of the proof is needed", () => {
  expect(judgePromotion(GOOD, WITNESS)).toBe("accept");
  expect(judgePromotion(GOOD, { ...WITNESS, mayAccept: false })).toBe("later");
  const operators: Partial<PromotionFacts>[] = [
    { standbys: [] },
    { clusterName: "" },
    { clusterName: "d" },
    { isOurs: false },
    { present: GOOD.accepted },
    { present: "7/00000009/5" },
    { present: "8/00000010/5" },
    { present: "7/00000010/6" },
  ];
  for (const fact of operators) {
    expect(judgePromotion({ ...GOOD, ...fact }, WITNESS)).toBe("operator");
  }
  expect(judgePromotion(GOOD, { ...WITNESS, renewals: undefined })).toBe("operator");
  const misses: Partial<PromotionFacts>[] = [
    { isBehind: true },
    { incarnation: "two" },
    { revision: 8n },
    { renewals: 19n },
    { renewals: undefined },
  ];
  for (const fact of misses) {
    for (const mayAccept of [true, false]) {
      expect(judgePromotion({ ...GOOD, ...fact }, { ...WITNESS, mayAccept })).toBe("object");
    }
  }
});
