import { expect, test } from "vitest";
import type { ExcludedName } from "../../sim/check/grant-log.ts";
import type { FaultKind } from "../../sim/fault-kinds.ts";
import type { Planted } from "../../sim/fleet.ts";
import { runHistory } from "../../sim/history.ts";
import { type Fault, type Plan, planOf, type TagPlan, withKind } from "../../sim/plan.ts";

const HISTORIES = process.env["IDMINT_LONG"] === "1" ? 100 : 3;
/** The same in every run: `pnpm sim` draws others with each commit. */
const FIRST = 1_409_593_863;
/** Most histories until something is repeated that nothing excuses. */
const MOST_SEEDS = 30;

const WENT_BACK = "store went back, unseen";
const SET_BACK = "Redis set back while it runs";
const MOVED = "store went back, as another one";

function without({ faults, ...plan }: Plan, kind: FaultKind): Plan {
  return { ...plan, faults: faults.filter((fault) => fault.kind !== kind) };
}

/** The same, and these befall it a few times, one after the other, while much is asked. */
function withFaults(plan: Plan, kinds: readonly FaultKind[], size = 0.9): Plan {
  const { faults } = plan;
  const more = [6_000, 12_000, 18_000, 24_000].flatMap((atMs, target) =>
    kinds.map((kind, at): Fault => ({ atMs: atMs + 200 * at, kind, target, ms: 3_500, size })),
  );
  return {
    ...plan,
    everyMs: 500,
    faults: [...faults, ...more].toSorted((a, b) => a.atMs - b.atMs),
  };
}

/** The same with one tag of snowflakes alone, which all use all the time. */
function withSnowflakes(plan: Plan): Plan {
  const [first] = plan.tags;
  if (first === undefined) throw new Error("a plan without tags");
  const name = "snowflake";
  const tag: TagPlan = { ...first, name, kind: name, order: "UNORDERED", ceiling: 2n ** 63n - 1n };
  return { ...plan, tags: [tag], limitTags: 1_000, everyMs: 250, access: undefined };
}

/** Programs that begin lease worker ids; the store forgets the lease of one, and the next one begins. */
function withLostLease(plan: Plan): Plan {
  const faults = [6_000, 12_000, 18_000, 24_000].flatMap((atMs): readonly Fault[] => [
    { atMs, kind: "program killed", target: 0, ms: 200, size: 0 },
    { atMs: atMs + 1_800, kind: "program killed", target: 1, ms: 200, size: 0 },
    { atMs: atMs + 1_950, kind: WENT_BACK, target: 0, ms: 1_600, size: 0 },
  ]);
  return { ...plan, faults };
}

function largeGaps(plan: Plan): Plan {
  return { ...plan, smallGaps: false, acceptsAlone: false };
}

/** Servers ask the store all the time, and for nothing else. */
function withSmallSegments({ tags, ...plan }: Plan): Plan {
  const some = tags.filter(({ kind }) => kind === "segment" || kind === "sequence");
  const small = some.map((tag) => ({ ...tag, min: 5, max: 5, ceiling: 2n ** 62n }));
  return { ...plan, tags: small, faults: [], actions: [] };
}

/** What counts elsewhere than in the store has excuses of its own. */
function ofStoreAlone(plan: Plan): Plan {
  const tags = plan.tags.filter(({ kind }) => !/redis|ticket/.test(kind));
  const faults = plan.faults.filter(({ kind }) => !/Redis|ticket/.test(kind));
  return { ...plan, tags, faults };
}

/** All use one sequence in Redis, and nothing else befalls them. */
function inRedisAlone(plan: Plan): Plan {
  const tags = withKind(plan, "counted_in_redis").tags.filter(
    ({ kind }) => kind === "counted_in_redis",
  );
  return { ...plan, tags, faults: [], actions: [], limitTags: 1_000, access: undefined };
}

/** For each excuse, histories in which what it is about cannot arise, and some in which it does. */
const EXCUSES: readonly {
  readonly name: ExcludedName;
  readonly cannot: (plan: Plan) => Plan;
  /** Seeds in which something was found. */
  readonly found?: readonly string[];
  readonly does: (plan: Plan) => Plan;
  readonly planted?: Planted;
}[] = [
  {
    name: "unseen roll-back",
    cannot: (plan) => withFaults(without(plan, WENT_BACK), [MOVED]),
    does: (plan) => withFaults(withSmallSegments(largeGaps(plan)), [WENT_BACK]),
    // Servers that see it stop by themselves only, so that the others go on a little longer.
    planted: { store: { forgetsMarks: true } },
  },
  {
    name: "too small a gap",
    cannot: (plan) => withFaults(largeGaps(plan), ["server killed", MOVED], 0),
    // A tag whose row was lost has no floor that a gap could raise, and was made anew from 1.
    found: ["1134250355"],
    does: (plan) => withFaults({ ...plan, acceptsAlone: false }, ["server killed", MOVED], 0),
  },
  {
    name: "leases that went back",
    cannot: (plan) => withSnowflakes(withFaults(without(plan, WENT_BACK), [MOVED])),
    does: (plan) => withSnowflakes(withLostLease(plan)),
  },
  {
    name: "two primaries",
    cannot: (plan) => without(ofStoreAlone(plan), "two primaries"),
    does: (plan) => withFaults(ofStoreAlone(plan), ["two primaries"]),
  },
  {
    name: "Redis set back while it runs",
    cannot: (plan) =>
      withFaults(without(withKind(plan, "counted_in_redis"), SET_BACK), [
        "Redis restarts",
        "a replica of Redis takes over",
      ]),
    // By less than a second.
    does: (plan) => withFaults(inRedisAlone(plan), [SET_BACK], 0),
  },
];

test.each(EXCUSES)(
  "nothing is excused by $name where that cannot be",
  async ({ name, cannot, found = [] }) => {
    const drawn = Array.from({ length: HISTORIES }, (_, at) => String(FIRST + at));
    for (const seed of [...found, ...drawn]) {
      const { violations } = await runHistory(cannot(planOf(seed)), { noExcuses: [name] });
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  },
);

test.each(EXCUSES)(
  "$name is noticed where nothing excuses it",
  async ({ name, does, planted = {} }) => {
    for (let at = 1; at <= MOST_SEEDS; at++) {
      const plan = does(planOf(`${name} ${at}`));
      const { violations } = await runHistory(plan, { noExcuses: [name], planted });
      if (violations.length === 0) continue;
      expect((await runHistory(plan, { planted })).violations).toEqual([]);
      return;
    }
    expect.fail(`nothing in ${MOST_SEEDS} histories`);
  },
);
