import { expect, onTestFinished, test, vi } from "vitest";
import { areWhole, type ProcessTable, scriptLinks, watchScript } from "../../src/main/script.ts";

/** Processes by id: parent, session, and whether a script started it. */
type World = Record<number, readonly [parent: number, session: number, isOfScript: boolean]>;

function tableOf(world: World): ProcessTable {
  return (pid) => {
    const found = world[pid];
    if (found === undefined) return undefined;
    const [parent, session, isOfScript] = found;
    return { parent, session, isOfScript };
  };
}

/** A terminal's shell 10, npx 20, its shell 30, pnpm 40 and the server 50. */
function npxWorld(): World {
  return {
    10: [1, 10, false],
    20: [10, 10, false],
    30: [20, 10, true],
    40: [30, 10, true],
    50: [40, 10, true],
  };
}

const LINKS = [
  { child: 50, parent: 40 },
  { child: 40, parent: 30 },
  { child: 30, parent: 20 },
];

test("the links go from the server up to what was typed, and not to the shell it was typed in", () => {
  expect(scriptLinks(50, tableOf(npxWorld()))).toEqual(LINKS);
});

test("a server that no script started has no links, and neither has one with a session of its own", () => {
  expect(scriptLinks(50, tableOf({ ...npxWorld(), 50: [10, 10, false] }))).toEqual([]);
  expect(scriptLinks(50, tableOf({ ...npxWorld(), 50: [40, 50, true] }))).toEqual([]);
});

test("a script that ended before its server looked has ended", async () => {
  const world: World = { ...npxWorld(), 1: [0, 1, false], 30: [1, 10, true] };
  delete world[20];
  expect(scriptLinks(50, tableOf(world))).toBeUndefined();
  await watchScript(50, tableOf(world))?.ended;
  // A container's first process may be the package manager itself.
  const inContainer: World = { 1: [0, 1, false], 2: [1, 1, true] };
  expect(scriptLinks(2, tableOf(inContainer))).toEqual([{ child: 2, parent: 1 }]);
});

test.each([20, 30, 40])("the end of process %d is seen from the server", (gone) => {
  const world = npxWorld();
  for (const [pid, [parent, session, isOfScript]] of Object.entries(world)) {
    // The system gives the children of a process that ended to process 1.
    if (parent === gone) world[Number(pid)] = [1, session, isOfScript];
  }
  delete world[gone];
  expect(areWhole(LINKS, tableOf(world))).toBe(false);
});

test("the end of the terminal's shell is not the end of the script", () => {
  const world: World = { ...npxWorld(), 20: [1, 10, false] };
  delete world[10];
  expect(areWhole(LINKS, tableOf(world))).toBe(true);
});

test("a script that ends is told once, and one that was stopped watching is not", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const world = npxWorld();
  const script = watchScript(50, tableOf(world));
  const stopped = watchScript(50, tableOf(world));
  const ends: string[] = [];
  void script?.ended.then(() => ends.push("watched"));
  void stopped?.ended.then(() => ends.push("stopped"));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(ends).toEqual([]);
  stopped?.stop();
  world[30] = [1, 10, true];
  await vi.advanceTimersByTimeAsync(1_000);
  expect(ends).toEqual(["watched"]);
  expect(watchScript(10, tableOf(world))).toBeUndefined();
});
