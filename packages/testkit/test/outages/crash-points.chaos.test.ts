// Servers that die at their n-th system call and at moments with names, and go on: docs/internals/crash-points.md. The whole of it is
// `pnpm crash-points`; a run takes a few points of each store, which the commit chooses.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { MAX_GAP_SEGMENTS, OrderBook, TagBook } from "../../crash/book.ts";
import { type ChainResult, runChain, runCommands } from "../../crash/chain.ts";
import { CALLS } from "../../crash/library.ts";
import { PLANTED } from "../../crash/planted.ts";
import { FAILPOINTS, namedPoints, pointsOf } from "../../crash/points.ts";
import { crashProgram } from "../../crash/program.ts";
import { startDatabase, STORES, type StoreName } from "../../crash/stores.ts";
import { isLong, seededRandom, someOf } from "../fleet-support.ts";

const LAST = 150;
const TIMEOUT_MS = isLong ? 3_600_000 : 180_000;
/** Calls of a life in a short run, which is over soon after the last point that it takes. */
const STEPS = isLong ? undefined : 25;

let program: string | undefined;

/** Points of each class of calls, an early one first, and some of those with names. */
function pointsFor(store: StoreName, seed: number) {
  const calls = CALLS.flatMap((call) => {
    if (isLong) return pointsOf(call, 1, LAST, false);
    const { below } = seededRandom(seed + CALLS.indexOf(call));
    const early = 1 + below(LAST / 3);
    const late = LAST / 3 + below((2 * LAST) / 3);
    return [early, late].map((at) => ({ call, at, isTorn: below(2) === 0 }));
  });
  const named = namedPoints("serve", store);
  return [...(isLong ? named : someOf(2, named)), ...calls];
}

function expectRight(store: StoreName, result: ChainResult): void {
  const { tried, reached, answering, repeats, largestGap, ids, faults } = result;
  console.log(
    `${store}: crash points ${tried}, reached ${reached} (${answering} of them by servers that answered calls), ids ${ids}, repeats ${repeats}, largest gap ${largestGap} segments`,
  );
  expect(faults).toEqual([]);
  expect(repeats).toBe(0);
  expect(largestGap).toBeLessThanOrEqual(MAX_GAP_SEGMENTS);
}

test.each(STORES)(
  "a server on %s that dies at any call repeats no id, loses two segments at most, and goes on",
  { timeout: TIMEOUT_MS },
  async (store) => {
    program ??= crashProgram();
    await using database = await startDatabase(store);
    const points = pointsFor(
      store,
      Number(process.env["IDMINT_SEED"] ?? 1) + STORES.indexOf(store),
    );
    const options = { program, database, points, ...(STEPS === undefined ? {} : { steps: STEPS }) };
    const result = await runChain(options);
    expectRight(store, result);
    // A life in which nobody is answered shows little.
    expect(result.answering).toBeGreaterThan(0);
    if (!isLong && someOf(1, STORES)[0] !== store) return;
    const migration = pointsOf("send", 1, 3, false);
    const named = namedPoints("migrate", store);
    expectRight(
      store,
      await runCommands("migrate", {
        program,
        database,
        points: [...named, ...migration].slice(0, 3),
      }),
    );
  },
);

test.each(someOf(1, Object.keys(PLANTED)))(
  "the judges find a planted fault: %s",
  { timeout: TIMEOUT_MS },
  async (name) => {
    const { changes, points, noticed } = PLANTED[name]!;
    await using database = await startDatabase("sqlite");
    const planted = crashProgram(changes);
    const options = { program: planted, database, points, steps: 15, untilFault: true };
    const { faults } = await runChain(options);
    expect(faults.filter((fault) => noticed.test(fault))).not.toEqual([]);
  },
);

test("every planted fault fits the sources", () => {
  for (const { file, from } of Object.values(PLANTED).flatMap(({ changes }) => changes)) {
    const text = readFileSync(path.join(import.meta.dirname, "../../../..", file), "utf8");
    expect(text.split(from), `${file}: ${from}`).toHaveLength(2);
  }
});

test("the judges see a repeat, an inversion and a gap", () => {
  const book = new TagBook();
  for (const id of [1n, 2n, 3n]) book.receive(id);
  expect(book.gapAt(203n, 0)).toBe(200n);
  // What a call in flight had asked for is no gap, and one that was told is not told again.
  expect(book.gapAt(233n, 30)).toBe(0n);
  expect(book.gapAt(233n, 0)).toBe(0n);
  book.giveBack(3n);
  book.receive(3n);
  expect(book.repeats).toEqual([]);
  book.receive(2n);
  expect(book.repeats).toEqual([2n]);

  const order = new OrderBook();
  const [early, late] = [order.ask(), order.ask()];
  early(2n);
  late(1n);
  expect(order.inversions).toEqual([]);
  order.ask()(2n);
  expect(order.inversions).toHaveLength(1);
});

test("every failpoint of the sources is tried, and none that is not there", () => {
  const packages = path.join(import.meta.dirname, "../../..");
  const names = ["cli", "core", "server"].flatMap((name) => {
    const folder = path.join(packages, name, "src");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    return files
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => [
        ...readFileSync(path.join(folder, file), "utf8").matchAll(/\/\/ failpoint: (\S+)/gu),
      ])
      .map(([, failpoint]) => failpoint);
  });
  expect(new Set(names)).toEqual(new Set(Object.keys(FAILPOINTS)));
  expect(names).toHaveLength(Object.keys(FAILPOINTS).length);
});
