// Servers and callers that run for long, while callers cancel calls: their memory and descriptors stay as they are.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Child } from "../../src/fleet/child.ts";
import type { Fleet } from "../../src/fleet/fleet.ts";
import type { LoadReport } from "../../src/fleet/load-config.ts";
import { judge } from "../../src/fleet/uniqueness.ts";
import { isLong, ownPostgres, startFleet } from "../fleet-support.ts";

/** On a busy machine a caller takes up to 25 s until it has all the memory that it goes on with. */
const SECONDS = isLong ? 600 : 75;
/** Some are answered before they are cancelled; about every twentieth ends so where calls take a round trip. */
const CANCELLED_SHARE = 0.07;
/** After the first third: memory that was asked for once may go on growing a little, memory that is lost grows for ever. */
const MOST_GROWTH = 1.1;
/** V8 lets garbage lie while there is room. In a small heap it does not, so what grows is lost. */
const SMALL_HEAP = { NODE_OPTIONS: "--max-old-space-size=64 --max-semi-space-size=4" };
/** Connections to the store come and go. */
const MORE_DESCRIPTORS = 4;

interface Sample {
  readonly rss: number;
  readonly descriptors: number;
}

function sampleOf({ pid = 0 }: Child): Sample {
  const [, pages = "0"] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ");
  return { rss: Number(pages) * 4_096, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

async function startLoad(fleet: Fleet): Promise<readonly Child[]> {
  await fleet.first.api.createTag({ name: "orders", min: 1_000, max: 1_000 });
  await fleet.first.api.createSequence("invoices");
  const common = { deadlineMs: 5_000, cancelShare: CANCELLED_SHARE };
  const next = { kind: "next", parallel: 8 } as const;
  const id = { kind: "id", parallel: 8 } as const;
  const loads = [
    { kind: "sdk", tag: "orders", activities: [{ ...next, perSecond: 400 }], min: 20, max: 20 },
    { kind: "sdk", tag: "invoices", activities: [{ ...next, perSecond: 200 }] },
    { kind: "grpc", tag: "orders", activities: [{ ...id, perSecond: 200 }] },
    { kind: "grpc", tag: "invoices", activities: [{ ...id, perSecond: 200 }] },
  ] as const;
  return Promise.all(
    loads.map(({ kind, ...load }) => fleet.startCallers(kind, { ...common, ...load }, SMALL_HEAP)),
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** What is wrong with what a process took, in words; empty: nothing. */
function faultOf(name: string, samples: readonly Sample[]): string {
  const part = (from: number, to: number): readonly Sample[] =>
    samples.slice(Math.floor(samples.length * from), Math.ceil(samples.length * to));
  const before = median(part(1 / 3, 1 / 2).map(({ rss }) => rss));
  const after = median(part(5 / 6, 1).map(({ rss }) => rss));
  const most = (list: readonly Sample[]): number =>
    Math.max(...list.map(({ descriptors }) => descriptors));
  const [few, many] = [most(part(0, 2 / 3)), most(part(2 / 3, 1))];
  const text = `${name}: ${(before / 2 ** 20).toFixed(1)} to ${(after / 2 ** 20).toFixed(1)} MiB, ${few} to ${many} descriptors`;
  console.log(text);
  return after > before * MOST_GROWTH || many > few + MORE_DESCRIPTORS ? text : "";
}

test(
  "memory and descriptors of servers and SDKs stay flat while every twentieth call is cancelled",
  { timeout: (2 * SECONDS + 120) * 1_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const fleet = await startFleet({ servers: 2, storeUrl: url, env: SMALL_HEAP });
    const callers = await startLoad(fleet);
    const children = [...fleet.servers.map((server) => server.process), ...callers];
    const samples = children.map((): Sample[] => []);
    for (let second = 0; second < SECONDS; second++) {
      await pause(1_000);
      for (const [at, child] of children.entries()) samples[at]?.push(sampleOf(child));
    }
    const reports = await Promise.all(callers.map((child) => fleet.stopCallers(child)));
    const faults = children.map(({ name }, at) => faultOf(name, samples[at] ?? []));
    const cancelled = reports.map(({ errors }) => sum(Object.values(errors)));
    console.log(
      `${sum(reports.map(({ answered }) => answered))} answered, ${sum(cancelled)} cancelled`,
    );
    expect(faults.filter(Boolean)).toEqual([]);
    for (const report of reports) expectOnlyCancelled(report);
    expect(sum(cancelled)).toBeGreaterThan(SECONDS);
    const [sdk, , grpc] = callers.map((child) => fleet.recordsOf(child));
    expect(judge([sdk, grpc].filter((file) => file !== undefined)).repeated).toBe(0);
  },
);

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

function expectOnlyCancelled({ errors, samples }: LoadReport): void {
  const others = Object.keys(errors).filter((name) => !name.startsWith("CANCELLED "));
  expect([others, others.length === 0 ? [] : samples]).toEqual([[], []]);
}
