import {
  NEVER_STOPPED,
  type ChangeStore,
  type NodeRenewal,
  type StoreChanges,
  type StorePart,
  type Tag,
  VersionGuard,
} from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createCounters } from "../../../src/service/counters.ts";
import type { Directory } from "../../../src/service/issue/directory.ts";
import { StoreWait } from "../../../src/service/upstream/store-wait.ts";
import { Poll } from "../../../src/service/upstream/poll.ts";
import { noRecord } from "../no-record.ts";
import { Presence } from "../../../src/service/presence.ts";

const CHANGES: StoreChanges = {
  incarnation: "one",
  revision: 1n,
  changed: [],
  more: false,
  behind: [],
  fenced: "",
  nowMs: 0,
  parts: [],
};

const RENEWED: StorePart = {
  name: "",
  incarnation: "one",
  revision: 1n,
  isRenewed: true,
  nodes: [],
  traffic: [],
  issuing: NEVER_STOPPED,
};

interface Asking {
  readonly at: number;
  readonly renewal: NodeRenewal | undefined;
  answer(more?: Partial<StoreChanges>): Promise<void>;
  fail(): Promise<void>;
}

/** A server that starts: its first poll is under way. */
interface Starting {
  readonly time: FakeTime;
  readonly asked: Asking[];
  readonly start: Promise<void>;
}

function nothing(): void {}

/** A poll every 800 ms of a store that answers when it is told to. */
async function started(before: (starting: Starting) => Promise<void> = async () => undefined) {
  const time = new FakeTime();
  const asked: Asking[] = [];
  const changes = ({ renewal }: Parameters<ChangeStore["changes"]>[0]) => {
    const { promise, resolve, reject } = Promise.withResolvers<StoreChanges>();
    const answer = async (more: Partial<StoreChanges> = {}) => {
      const revision = more.revision ?? 1n;
      resolve({ ...CHANGES, parts: [{ ...RENEWED, revision }], ...more });
      await settle();
    };
    const fail = async () => {
      reject(new Error("down"));
      await settle();
    };
    asked.push({ at: time.now(), renewal, answer, fail });
    return promise;
  };
  const node = { id: "own", instance: "own", version: "", zone: "", startedAtMs: 0 };
  const presence = new Presence({
    node: { ...node, maxOfflineMs: 3_000 },
    firstCount: 0n,
    proofPatienceMs: 0,
    record: noRecord(),
    partsOf: undefined,
    clock: time,
    emit: () => undefined,
  });
  const saw: number[] = [];
  const applied: { readonly names: string; done(): Promise<void> }[] = [];
  const apply = async (tags: readonly Tag[]) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = async () => {
      resolve();
      await settle();
    };
    applied.push({ names: tags.map(({ name }) => name).join(), done });
    await promise;
  };
  const saving = { error: undefined as Error | undefined };
  const poll = new Poll({
    store: { changes },
    ownAccept: { needed: () => undefined, over: () => undefined },
    speaker: { saw: () => undefined },
    claims: { startHistory: () => undefined },
    directory: {
      fenceAll: nothing,
      retryAll: nothing,
      startHistory: nothing,
      apply,
      history: 0,
    } as unknown as Directory,
    guard: new VersionGuard(),
    record: noRecord(),
    presence,
    nodes: {
      wantsNodes: true,
      trafficRevision: 0n,
      sawTraffic: () => false,
      saw: (_parts, sentAt) => saw.push(sentAt),
    },
    saved: async () => {
      if (saving.error !== undefined) throw saving.error;
    },
    clock: time,
    timers: time,
    intervalMs: 800,
    timeoutMs: 1_000,
    counters: createCounters(),
    emit: () => undefined,
  });
  const ports = { clock: time, timers: time, random: () => 1, emit: () => undefined };
  const start = poll.start(undefined, new StoreWait(ports, 10_000));
  await before({ time, asked, start });
  await asked.at(-1)!.answer();
  await asked.at(-1)!.answer();
  await start;
  // From here on: what is asked after the start.
  asked.splice(0, asked.length - 1);
  const mayIssue = () => presence.refusalOf("t") === undefined;
  const at = () => asked.map((each) => each.at);
  return { time, asked, poll, at, mayIssue, saw, applied, saving, presence };
}

/** Lets time pass with all that happens in it. */
async function pass(time: FakeTime, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 50) {
    time.advance(Math.min(50, left));
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) await Promise.resolve();
}

function tagAt(revision: bigint): Tag {
  return { name: `t${revision}`, revision } as Tag;
}

test("a server that starts asks a slow store again, and never uses the late answer", async () => {
  const { mayIssue } = await started(async ({ time, asked }) => {
    // Given up after 1 s, and answered when nobody waits any longer.
    await pass(time, 1_100);
    expect(asked.map(({ at }) => at)).toEqual([0, 1_100]);
    await asked[0]!.answer({ fenced: "late" });
    expect(asked.length).toBe(2);
  });
  expect(mayIssue()).toBe(true);
});

test("a server issues until max_offline after the sending of its last renewal that was acknowledged", async () => {
  const { time, asked, mayIssue } = await started();
  time.advance(800);
  time.advance(500);
  // Sent at 800, answered at 1,300.
  await asked[1]!.answer();
  time.advance(300);
  await asked[2]!.fail();
  time.advance(3_799 - time.now());
  expect(mayIssue()).toBe(true);
  time.advance(1);
  expect(mayIssue()).toBe(false);
});

test("a server that was cut off opens only after a poll that was sent after its row moved again", async () => {
  const { time, asked, mayIssue } = await started();
  await pass(time, 3_300);
  expect(mayIssue()).toBe(false);
  const returned = asked.at(-1)!;
  await returned.answer();
  expect(mayIssue()).toBe(false);
  const second = asked.at(-1)!;
  expect(second).not.toBe(returned);
  await second.answer();
  expect(mayIssue()).toBe(true);
});

test("a store that waits to be accepted is asked four times a second, and then as before", async () => {
  const { time, asked, at } = await started();
  const step = async (ms: number, more: Partial<StoreChanges>): Promise<void> => {
    await pass(time, ms);
    await asked.at(-1)!.answer(more);
  };
  await step(800, { fenced: "it went back" });
  await step(250, { fenced: "it went back" });
  await step(250, { incarnation: "two" });
  await step(750, {});
  await pass(time, 50);
  expect(at()).toEqual([0, 800, 1_050, 1_300, 2_100]);
});

test("an answer that comes later than max_offline opens nothing", async () => {
  const { time, asked, mayIssue, presence } = await started();
  expect(presence.isCutOff).toBe(false);
  time.advance(800);
  time.advance(2_300);
  await asked[1]!.answer();
  expect(mayIssue()).toBe(false);
});

test("what a renewal says was obeyed was applied before it was sent", async () => {
  const { time, asked, applied } = await started();
  time.advance(800);
  expect(asked[1]!.renewal).toMatchObject({ incarnation: "one", obeyed: 1n });
  await asked[1]!.answer({ revision: 7n, changed: [tagAt(7n)] });
  expect(applied.map(({ names }) => names)).toEqual(["t7"]);
  time.advance(2_000);
  // The directory has not taken it yet, so nothing else is asked.
  expect(asked).toHaveLength(2);
  await applied[0]!.done();
  time.advance(800);
  expect(asked[2]!.renewal).toMatchObject({ obeyed: 7n });
});

test("of a page only what it had is obeyed, and a poll that is not whole keeps nobody issuing", async () => {
  const { time, asked, applied, mayIssue, saw } = await started();
  time.advance(800);
  await asked[1]!.answer({ revision: 9n, changed: [tagAt(4n)], more: true });
  await applied[0]!.done();
  expect(asked[2]!.renewal).toMatchObject({ obeyed: 4n });
  expect(saw).toEqual([0, 0]);
  time.advance(2_200);
  expect(mayIssue()).toBe(false);
});

test("what a later life would have to know is saved before it is said to be obeyed", async () => {
  const { time, asked, applied, saving } = await started();
  saving.error = new Error("the disk is full");
  time.advance(800);
  await asked[1]!.answer({ revision: 7n, changed: [tagAt(7n)] });
  await applied[0]!.done();
  time.advance(800);
  expect(asked[2]!.renewal).toMatchObject({ obeyed: 1n });
});

test("whoever waits for a fresh poll waits for one that began after that", async () => {
  const { time, asked, poll } = await started();
  time.advance(800);
  const done: string[] = [];
  void poll.refresh().then(() => done.push("refreshed"));
  await asked[1]!.answer();
  expect(done).toEqual([]);
  time.advance(50);
  await asked[2]!.answer();
  expect(done).toEqual(["refreshed"]);
  // Nobody waits for long for a store that does not answer.
  void poll.refresh().then(() => done.push("given up"));
  time.advance(1_500);
  await settle();
  expect(done).toEqual(["refreshed", "given up"]);
  const last = poll.refresh();
  poll.stop();
  time.advance(1_500);
  expect([await last, await poll.refresh()]).toEqual([false, false]);
});

test("what another server tells of is asked for at once, but not sooner than 50 ms after the last time", async () => {
  const { time, asked, poll, at } = await started();
  time.advance(300);
  poll.hasten();
  time.advance(0);
  expect(at()).toEqual([0, 300]);
  await asked[1]!.answer();
  for (let turn = 0; turn < 10; turn++) poll.hasten();
  time.advance(49);
  expect(at()).toEqual([0, 300]);
  time.advance(1);
  expect(at()).toEqual([0, 300, 350]);
  await asked[2]!.answer();
  time.advance(799);
  expect(at()).toHaveLength(3);
  time.advance(1);
  expect(at()).toEqual([0, 300, 350, 1_150]);
});

test("what is told while a poll is under way takes one more, and never two at once", async () => {
  const { time, asked, poll, at } = await started();
  time.advance(800);
  for (let turn = 0; turn < 10; turn++) poll.hasten();
  time.advance(500);
  expect(at()).toEqual([0, 800]);
  await asked[1]!.answer();
  time.advance(0);
  expect(at()).toEqual([0, 800, 1_300]);
  await asked[2]!.answer();
  time.advance(799);
  expect(at()).toHaveLength(3);
});

test("a store that does not answer is not asked more often because of signals", async () => {
  const { time, asked, poll, at } = await started();
  time.advance(800);
  await asked[1]!.fail();
  for (let ms = 0; ms < 249; ms++) {
    poll.hasten();
    time.advance(1);
  }
  expect(at()).toHaveLength(2);
  time.advance(1);
  expect(at()).toEqual([0, 800, 1_050]);
  poll.stop();
  await asked[2]!.answer();
  poll.hasten();
  time.advance(5_000);
  expect(at()).toHaveLength(3);
});
