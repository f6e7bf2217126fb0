import { setTimeout as pause } from "node:timers/promises";
import { type Benchmark, type Effort, ownSamples, samplesOf } from "../lib/benchmark.ts";
import { cores } from "../lib/cpus.ts";
import { atLeast, atMost, type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import { type Idmint, script, type Server, startFloor, startIdmint } from "../lib/servers.ts";
import type { StormLoad, StormResult } from "../lib/storm-load.ts";

/** What is offered of what a server can answer at best. */
const STORM = 5;
/** A load that a server does not notice. */
const LIGHT = 0.2;
/** As real clients open them: several connections, each with as many calls in flight as the server allows. */
const FLOOD = { connections: 4, streams: 1_024 };
const CALM = { connections: 1, streams: 128 };
/** A server finds out within this time that it is overloaded. */
const SETTLE_SECONDS = 3;
/** Calls a second of the caller that is not to notice the storm of another. */
const MODEST = 200;
/** So that refusals are answered at once, and cost what they cost. */
const REFUSALS = 200;
const QUOTA = 100;
/** Of its quota, what a caller takes that keeps to it. */
const KEPT = 0.95;
const FIRST = "127.0.0.1";
const SECOND = "127.0.0.2";

/** A round without quotas. */
interface OverloadedRound {
  readonly best: StormResult;
  readonly light: StormResult;
  readonly flood: StormResult;
  readonly floodRssGrowth: number;
  readonly modestBeside: StormResult;
  readonly secondsAfter: number;
}

interface QuotaRound {
  readonly modestAlone: StormResult;
  readonly modestBefore: StormResult;
  readonly modestInQuota: StormResult;
}

interface RefusalRound {
  readonly refusalCpuUs: number;
  readonly floorCpuUs: number;
  readonly quota: StormResult;
}

/** Seconds that each kind of load lasts, and of watching until refusals end. */
interface Times {
  /** Of loads before what is measured. */
  readonly warmUp: number;
  readonly storm: number;
  readonly short: number;
  readonly settle: number;
  readonly after: number;
}

type Round = OverloadedRound & QuotaRound & RefusalRound;
type LoadOptions = Partial<StormLoad> & Pick<StormLoad, "callsPerSecond" | "seconds">;

async function loadOf(server: Server, tag: string, options: LoadOptions): Promise<StormResult> {
  const load: StormLoad = {
    ...CALM,
    address: server.address,
    from: FIRST,
    tag,
    settleSeconds: 0,
    ...options,
  };
  const command = [...cores.generator, ...script("lib/storm-load.ts", JSON.stringify(load))];
  await using generator = new Subject("storm-load", command);
  const output = await generator.toEnd((load.seconds + 60) * 1_000);
  const result = JSON.parse(output.trim().split("\n").at(-1) ?? "") as StormResult;
  if (result.reset > result.refused) throw new Error(`a server reset ${result.reset} calls`);
  return result;
}

/** The server's processor time, microseconds a call. */
async function cpuOf(server: Server, run: () => Promise<StormResult>): Promise<number> {
  const before = server.subject.cpuSeconds;
  const { answered, refused } = await run();
  return ((server.subject.cpuSeconds - before) / (answered + refused)) * 1e6;
}

/** More calls than a server can answer, and more than a caller may make. */
export const overload: Benchmark = {
  name: "overload",
  title: "Overload and quotas",
  run: async (effort) => {
    const rounds: Round[] = [];
    for (let round = 0; round < effort.rounds; round++) rounds.push(await roundOf(effort));
    return figuresOf(rounds);
  },
};

async function roundOf({ quick, seconds }: Effort): Promise<Round> {
  const times: Times = quick
    ? { warmUp: 0, storm: 0.5, short: 0.2, settle: 0, after: 0 }
    : {
        warmUp: Math.min(2, 2 * seconds),
        storm: process.env["IDMINT_LONG"] === "1" ? 60 : 5 * seconds,
        short: 2 * seconds,
        settle: SETTLE_SECONDS,
        after: 4,
      };
  const overloaded = await overloadedRound(times);
  return {
    ...overloaded,
    ...(await quotaRound(overloaded.best.answeredPerSecond, times)),
    ...(await refusalRound(times)),
  };
}

/** A server without quotas. */
async function overloadedRound({
  warmUp,
  storm: stormSeconds,
  short: shortSeconds,
  settle: settleSeconds,
  after: afterSeconds,
}: Times): Promise<OverloadedRound> {
  await using idmint = await startIdmint();
  const tag = await idmint.makeTag();
  const best = await bestOf(idmint, tag, warmUp, shortSeconds);
  const rate = best.answeredPerSecond;
  const light = await loadOf(idmint, tag, {
    ...FLOOD,
    callsPerSecond: rate * LIGHT,
    seconds: shortSeconds,
  });
  const secondsBefore = Math.min(1, stormSeconds / 2);
  const [flood, modestBeside, after, floodRssGrowth] = await Promise.all([
    loadOf(idmint, tag, {
      ...FLOOD,
      callsPerSecond: rate * STORM,
      seconds: stormSeconds,
      settleSeconds,
    }),
    loadOf(idmint, tag, {
      from: SECOND,
      callsPerSecond: MODEST,
      seconds: stormSeconds,
      settleSeconds,
    }),
    pause((stormSeconds - secondsBefore) * 1_000).then(() =>
      loadOf(idmint, tag, { callsPerSecond: MODEST, seconds: secondsBefore + afterSeconds }),
    ),
    rssGrowthOf(idmint, stormSeconds),
  ]);
  const secondsAfter = Math.max(0, after.lastRefusalAt - secondsBefore);
  return { best, light, flood, floodRssGrowth, modestBeside, secondsAfter };
}

/** As many calls as the server answers with a queue that is short. */
async function bestOf(
  idmint: Idmint,
  tag: string,
  warmUp: number,
  seconds: number,
): Promise<StormResult> {
  const closed = { connections: 8, streams: 16, callsPerSecond: 0 };
  if (warmUp > 0) await loadOf(idmint, tag, { ...closed, seconds: warmUp });
  return loadOf(idmint, tag, { ...closed, seconds });
}

/** How much memory grows after the first third, as a share. */
async function rssGrowthOf({ subject }: Idmint, seconds: number): Promise<number> {
  await pause((seconds / 3) * 1_000);
  const before = subject.rssBytes;
  await pause((seconds / 3) * 2 * 1_000 - 200);
  return subject.rssBytes / before - 1;
}

/**
 * A server with a quota of a fifth of what it can. One caller keeps to its quota at first, and asks for five times what the
 * server can later. The other asks for little.
 */
async function quotaRound(
  rate: number,
  { storm: stormSeconds, settle: settleSeconds }: Times,
): Promise<QuotaRound> {
  const quota = String(Math.max(MODEST * 2, Math.round(rate * LIGHT)));
  await using idmint = await startIdmint({ env: { IDMINT_QUOTA_CALLER_CALLS: quota } });
  const tag = await idmint.makeTag();
  const modest = { from: SECOND, callsPerSecond: MODEST, settleSeconds };
  const modestAlone = await loadOf(idmint, tag, { ...modest, seconds: stormSeconds });
  const beside = async (callsPerSecond: number): Promise<StormResult> => {
    const [, its] = await Promise.all([
      loadOf(idmint, tag, { ...FLOOD, callsPerSecond, seconds: stormSeconds, settleSeconds }),
      loadOf(idmint, tag, { ...modest, seconds: stormSeconds }),
    ]);
    return its;
  };
  const modestBefore = await beside(Number(quota) * KEPT);
  const modestInQuota = await beside(rate * STORM);
  return { modestAlone, modestBefore, modestInQuota };
}

/** What a refusal costs beside a bare answer at the same rate, and how well a small quota is kept. */
async function refusalRound({
  warmUp,
  short: seconds,
  settle,
  after,
}: Times): Promise<RefusalRound> {
  await using floor = await startFloor();
  await using idmint = await startIdmint({
    env: { IDMINT_QUOTA_CALLER_CALLS: `1,${SECOND}=${QUOTA}` },
  });
  const tag = await idmint.makeTag();
  const load = { ...FLOOD, callsPerSecond: REFUSALS, seconds };
  for (const server of warmUp > 0 ? [idmint, floor] : []) {
    await loadOf(server, tag, { ...load, seconds: Math.min(1, warmUp) });
  }
  const floorCpuUs = await cpuOf(floor, () => loadOf(floor, tag, load));
  const refusalCpuUs = await cpuOf(idmint, () => loadOf(idmint, tag, load));
  // The burst is over by then.
  const quota = await loadOf(idmint, tag, {
    ...load,
    from: SECOND,
    callsPerSecond: QUOTA * 10,
    seconds: seconds + after / 2,
    settleSeconds: Math.min(2, settle),
  });
  return { refusalCpuUs, floorCpuUs, quota };
}

function figuresOf(rounds: readonly Round[]): readonly Figure[] {
  const of = (pick: (round: Round) => number) => ownSamples(rounds, pick);
  const against = (ours: (round: Round) => number, peer: (round: Round) => number) =>
    rounds.map((round) => ({ ours: ours(round), peer: peer(round) }));
  return [
    {
      id: "overload.goodput",
      text: `answers while ${STORM} × as many calls are offered`,
      unit: "calls/s",
      peer: "at best",
      samples: against(
        ({ flood }) => flood.answeredPerSecond,
        ({ best }) => best.answeredPerSecond,
      ),
      bar: ratioAtLeast(0.8),
    },
    {
      id: "overload.p99",
      text: "99th percentile of what is admitted meanwhile",
      unit: "ms",
      peer: `with ${LIGHT} × as many`,
      samples: against(
        ({ flood }) => flood.p99,
        ({ light }) => light.p99,
      ),
      bar: ratioAtMost(3),
    },
    {
      id: "overload.refused",
      text: "refusals meanwhile",
      unit: "calls/s",
      samples: of(({ flood }) => flood.refusedPerSecond),
    },
    {
      id: "overload.memory",
      text: "growth of memory (RSS) after the first third",
      unit: "%",
      samples: of(({ floodRssGrowth }) => floodRssGrowth * 100),
      bar: atMost(10),
    },
    {
      id: "overload.after",
      text: "last call after the storm that was refused",
      unit: "s",
      samples: of(({ secondsAfter }) => secondsAfter),
      bar: atMost(2),
    },
    {
      id: "overload.modest-refused",
      text: "refusals of a second caller, without quotas",
      unit: "calls",
      samples: of(({ modestBeside }) => modestBeside.refused),
      bar: atMost(0),
    },
    {
      id: "overload.modest-p99",
      text: "99th percentile of a second caller, without quotas",
      unit: "ms",
      samples: of(({ modestBeside }) => modestBeside.p99),
    },
    ...quotaFigures(rounds, against),
  ];
}

function quotaFigures(
  rounds: readonly Round[],
  against: (ours: (round: Round) => number, peer: (round: Round) => number) => Figure["samples"],
): readonly Figure[] {
  const of = (pick: (round: Round) => number) => ownSamples(rounds, pick);
  return [
    {
      id: "overload.quota-p99",
      text: "99th percentile of a second caller within its quota, while the first is over its own",
      unit: "ms",
      peer: "while the first keeps to its own",
      samples: against(
        ({ modestInQuota }) => modestInQuota.p99,
        ({ modestBefore }) => modestBefore.p99,
      ),
      bar: ratioAtMost(1.5),
    },
    {
      id: "overload.alone-p99",
      text: "99th percentile of the second caller alone",
      unit: "ms",
      samples: of(({ modestAlone }) => modestAlone.p99),
    },
    {
      id: "overload.quota-refused",
      text: "its refusals",
      unit: "calls",
      samples: of(({ modestInQuota }) => modestInQuota.refused),
      bar: atMost(0),
    },
    {
      id: "overload.refusal-cpu",
      text: "server's processor time of a refusal",
      unit: "µs a call",
      peer: "an answer of bare grpc-js, at the same rate",
      samples: samplesOf(
        rounds.map(({ refusalCpuUs }) => refusalCpuUs),
        rounds.map(({ floorCpuUs }) => floorCpuUs),
        (cpuUs) => cpuUs,
      ),
    },
    {
      id: "overload.quota",
      text: `admitted of ${QUOTA * 10} calls/s with a quota of ${QUOTA}`,
      unit: "calls/s",
      samples: of(({ quota }) => quota.answeredPerSecond),
      bar: atLeast(QUOTA * 0.9),
    },
    {
      id: "overload.quota-most",
      text: `admitted of ${QUOTA * 10} calls/s with a quota of ${QUOTA}, at most`,
      unit: "calls/s",
      samples: of(({ quota }) => quota.answeredPerSecond),
      bar: atMost(QUOTA * 1.1),
    },
  ];
}
