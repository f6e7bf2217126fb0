// For whom a statement is that several calls wait for.
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { realSystem } from "../../src/main/system.ts";
import { type CallTrace, presentTrace, runFor } from "../../src/service/trace.ts";
import { SEQUENCE, setUp, SETTINGS } from "./directory-world.ts";

class Trace implements CallTrace {
  readonly ids = { trace_id: "", span_id: "" };
  isOver = false;

  operation(): { end(): void } {
    return { end: () => undefined };
  }

  end(): void {
    this.isOver = true;
  }
}

/** A directory whose store remembers for whom it was asked what. */
async function watched() {
  const world = setUp();
  const seen: [call: string, trace: CallTrace | undefined][] = [];
  world.store.faults = {
    before: async (call) => {
      seen.push([call, presentTrace()]);
    },
  };
  const create = (name: string, kind = SETTINGS) =>
    world.store.createTag({ ...kind, name }, { validateOnly: false });
  await create("a");
  await create("b");
  await create("strict", SEQUENCE);
  seen.splice(0);
  return { ...world, seen };
}

test("a statement is for a traced call that waits for it, whichever call it began with", async () => {
  const { ids, call, seen, time } = await watched();
  const trace = new Trace();
  // Neither the lookup nor the load began with the traced call.
  const first = ids.generateId("a", call);
  const second = runFor(trace, () => ids.generateId("b", call));
  time.advance(100);
  await Promise.all([first, second]);
  expect(seen.slice(0, 2)).toEqual([
    ["getTags", trace],
    ["grant", trace],
  ]);
});

test("a round trip of a sequence is for a call of its batch, and never for one of the batch before", async () => {
  const { ids, call, seen } = await watched();
  await ids.generateId("strict", call);
  seen.splice(0);
  const [one, two] = [new Trace(), new Trace()];
  const run = async (trace: Trace | undefined): Promise<void> => {
    await runFor(trace, () => ids.generateId("strict", call));
    trace?.end();
  };
  await run(one);
  await run(undefined);
  await run(two);
  expect(seen.map(([, trace]) => trace)).toEqual([one, undefined, two]);
});

test("what a call set going is for nobody once the call was answered", async () => {
  const trace = new Trace();
  const later = runFor(trace, async () => {
    expect(presentTrace()).toBe(trace);
    await new Promise((resolve) => setTimeout(resolve, 5));
    return presentTrace();
  });
  trace.end();
  expect(await later).toBeUndefined();
});

test("what a timer does is for nobody, also while the call that set it still waits", async () => {
  const trace = new Trace();
  const { promise, resolve } = Promise.withResolvers<CallTrace | undefined>();
  runFor(trace, () => realSystem.timers.after(1, () => resolve(presentTrace())));
  expect(await promise).toBeUndefined();
  expect(trace.isOver).toBe(false);
});

test("a store that is asked for nobody has no trace", async () => {
  const store = new MemoryStore();
  const seen: unknown[] = [];
  store.faults = { before: async () => void seen.push(presentTrace()) };
  await store.getTags(["a"]);
  expect(seen).toEqual([undefined]);
});
