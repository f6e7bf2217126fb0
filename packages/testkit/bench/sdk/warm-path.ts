import { type Benchmark, type Effort, interleaved, samplesOf } from "../lib/benchmark.ts";
import { cores } from "../lib/cpus.ts";
import { type Bar, type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import { type Idmint, script, startIdmint } from "../lib/servers.ts";
import { median } from "../lib/statistics.ts";
import type { Cost } from "./measure.ts";
import { npmNames } from "./subjects.ts";

const TIMEOUT_MS = 120_000;

/** Nanoseconds an id, of one subject in a process of its own, on the generator's core. */
export async function costOf(
  idmint: Idmint,
  tag: string,
  name: string,
  seconds: number,
): Promise<number> {
  const args = [name, String(seconds), idmint.address, tag];
  const command = [...cores.generator, ...script("sdk/measure.ts", ...args)];
  await using subject = new Subject(name, command);
  const output = await subject.toEnd(TIMEOUT_MS);
  return (JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as Cost).ns;
}

/** Seconds of one such measurement: the figures are of slices of 20 ms, so more of them say no more. */
export const secondsOf = ({ quick, seconds }: Effort): number =>
  quick ? 0.1 : Math.min(1, seconds);

function figure(
  name: string,
  peer: string,
  ours: readonly number[],
  bare: readonly number[],
  bar: Bar,
): Figure {
  const samples = samplesOf(ours, bare, (ns) => ns);
  return { id: `sdk-warm.${name}`, text: name, unit: "ns an id", peer, samples, bar };
}

/** What an id from memory costs, against the least that such an id can cost. */
export const warmPath: Benchmark = {
  name: "sdk-warm",
  title: "The SDK, ids in memory",
  run: async (effort) => {
    await using idmint = await startIdmint();
    const tag = await idmint.makeTag();
    const measure = (name: string) => () => costOf(idmint, tag, name, secondsOf(effort));
    const costs = await interleaved(effort, {
      number: measure("ours:nextNumberSync"),
      bareNumber: measure("bare:n++"),
      bigint: measure("ours:nextSync"),
      bareBigint: measure("bare:BigInt(n++)"),
      awaited: measure("ours:next"),
      bareAwaited: measure("bare:await field"),
      string: measure("ours:nextStringSync"),
      plainString: measure("ours:String(nextSync)"),
    });
    return [
      figure(
        "nextNumberSync",
        "n++ in a closure",
        costs.number,
        costs.bareNumber,
        ratioAtMost(2.5),
      ),
      figure(
        "nextSync",
        "BigInt(n++) in a closure",
        costs.bigint,
        costs.bareBigint,
        ratioAtMost(1),
      ),
      figure(
        "next",
        "awaiting an async function that returns a field",
        costs.awaited,
        costs.bareAwaited,
        ratioAtMost(1.6),
      ),
      figure(
        "nextStringSync",
        "String(nextSync())",
        costs.string,
        costs.plainString,
        ratioAtMost(0.7),
      ),
    ];
  },
};

/** May be faster than our strings: they count letters, and keep nothing apart between two processes but luck. */
const MAY_BE_FASTER_AS_STRING: ReadonlySet<string> = new Set(["hyperid", "nanoid"]);

/** Every id generator of npm that people would take instead. */
export const againstNpm: Benchmark = {
  name: "sdk-npm",
  title: "The SDK against npm's id generators",
  run: async (effort) => {
    await using idmint = await startIdmint();
    const tag = await idmint.makeTag();
    const names = [
      "ours:nextSync",
      "ours:nextStringSync",
      ...npmNames.flatMap((name) => [`npm:${name}`, `text:${name}`]),
    ];
    const costs = await interleaved(
      { rounds: Math.min(3, effort.rounds) },
      Object.fromEntries(
        names.map((name) => [name, () => costOf(idmint, tag, name, secondsOf(effort) / 2)]),
      ),
    );
    const of = (name: string): readonly number[] => costs[name] ?? [];
    const rows = npmNames.flatMap((name): readonly Figure[] => [
      {
        id: `sdk-npm.${name}`,
        text: name,
        unit: "ns an id",
        peer: "idmint nextSync",
        samples: samplesOf(of(`npm:${name}`), of("ours:nextSync"), (ns) => ns),
        bar: ratioAtLeast(1),
      },
      {
        id: `sdk-npm.${name}.string`,
        text: `${name}, as a flat string`,
        unit: "ns an id",
        peer: "idmint nextStringSync",
        samples: samplesOf(of(`text:${name}`), of("ours:nextStringSync"), (ns) => ns),
        ...(MAY_BE_FASTER_AS_STRING.has(name) ? {} : { bar: ratioAtLeast(1) }),
      },
    ]);
    return rows.toSorted((a, b) => costOfFigure(a) - costOfFigure(b));
  },
};

const costOfFigure = ({ samples }: Figure): number => median(samples.map(({ ours }) => ours));
