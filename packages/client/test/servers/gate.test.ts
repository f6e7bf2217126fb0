// How many requests a client has in flight to one server, and what becomes of those that wait.
import { IdmintError } from "@idmint/core";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { createIdClient } from "../../src/index.ts";
import { Gate } from "../../src/servers/gate.ts";
import { Patience } from "../../src/servers/patience.ts";
import {
  ended,
  FRESH,
  heard,
  isSilent,
  maySend,
  MOST,
  type Pace,
  sent,
  tooMany,
} from "../../src/servers/pace-state.ts";
import { startFleet } from "../fake-fleet.ts";
import { type FakeWorld, fakeWorld, type PendingAllocate, settle } from "../fake-transport.ts";
import { leasedWorld } from "../kinds/snowflake-support.ts";
import { allocated, pause } from "../support.ts";

const FIRST = 64;
const LEAST = 8;
const away = new IdmintError("SERVER_UNAVAILABLE", "away");

function after(steps: number, step: (pace: Pace) => Pace, from: Pace = FRESH): Pace {
  let pace = from;
  for (let at = 0; at < steps; at++) pace = step(pace);
  return pace;
}

test("the limit rises with answers, is halved once for requests that were under way together, and then rises slowly", () => {
  const rose = after(36, (pace) => heard(pace, 1));
  expect(rose.limit).toBe(FIRST + 36);
  expect(after(2_000, (pace) => heard(pace, 1)).limit).toBe(MOST);
  const fell = after(100, (pace) => tooMany(pace, 5, 10), rose);
  expect(fell.limit).toBe(50);
  const again = tooMany(fell, 11, 12);
  expect(again.limit).toBe(25);
  // About one more for each round of answers.
  const slow = after(25, (pace) => heard(pace, 20), again);
  expect(slow.limit).toBeGreaterThan(25.9);
  expect(slow.limit).toBeLessThan(26.1);
});

test("whatever servers do, a client asks them, and never for more than a connection takes", () => {
  const step = fc.constantFrom(
    (pace: Pace, now: number) => heard(pace, now),
    (pace: Pace, now: number) => tooMany(pace, now - 1, now),
    (pace: Pace) => (maySend(pace) ? sent(pace) : pace),
    (pace: Pace) => (pace.inFlight > 0 ? ended(pace) : pace),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 2_000 }), (steps) => {
      let pace = FRESH;
      for (const [now, next] of steps.entries()) {
        pace = next(pace, now);
        expect(pace.limit).toBeGreaterThanOrEqual(LEAST);
        expect(pace.limit).toBeLessThanOrEqual(MOST);
        expect(pace.inFlight).toBeLessThanOrEqual(MOST);
      }
    }),
  );
});

test("a server that was heard since a request was sent is not silent", () => {
  expect(isSilent(FRESH, 5)).toBe(true);
  expect(isSilent(heard(FRESH, 5), 5)).toBe(false);
  expect(isSilent(heard(FRESH, 4), 5)).toBe(true);
});

/** Requests that came to a gate, by their number, with why they were not sent. */
function crowd(gate: Gate, count: number): { number: number; silence: IdmintError | undefined }[] {
  const entered: { number: number; silence: IdmintError | undefined }[] = [];
  for (let number = 0; number < count; number++) {
    const turn = gate.enter();
    if (turn === undefined) entered.push({ number, silence: undefined });
    else void turn.then((silence) => entered.push({ number, silence }));
  }
  return entered;
}

test("requests beyond the limit wait, and go on in the order in which they came", async () => {
  const gate = new Gate();
  const entered = crowd(gate, FIRST + 10);
  expect(entered.length).toBe(FIRST);
  gate.leave();
  gate.leave();
  await settle();
  expect(entered.slice(FIRST).map(({ number }) => number)).toEqual([FIRST, FIRST + 1]);
  // What cannot wait does not, and counts.
  gate.enterAtOnce();
  gate.leave();
  await settle();
  expect(entered.length).toBe(FIRST + 2);
});

test("a server that is slow for one keeps the others waiting, and one that is silent sends them on", async () => {
  const gate = new Gate();
  const entered = crowd(gate, FIRST + 10);
  gate.heard(10);
  gate.unanswered(5, 20, away);
  gate.leave();
  await settle();
  expect(entered.length).toBe(FIRST);
  gate.unanswered(15, 30, away);
  await settle();
  expect(entered.slice(FIRST).map(({ silence }) => silence)).toEqual(
    Array.from({ length: 10 }, () => away),
  );
});

/** Ids of so many cold tags, asked for at once. */
async function askCold(
  world: FakeWorld,
  tags: number,
): Promise<{ readonly answered: () => number }> {
  let answered = 0;
  for (let at = 0; at < tags; at++) {
    void world.client
      .tag(`t${at}`)
      .next()
      .then(() => answered++);
  }
  await settle();
  return { answered: () => answered };
}

test("cold tags do not ask all at once, and all are answered by one request each", async () => {
  const world = fakeWorld({ address: "a:1" });
  const asked = await askCold(world, 1_000);
  let requests = 0;
  let most = 0;
  while (world.transport.pending.length > 0) {
    const round = world.transport.pending.splice(0);
    most = Math.max(most, round.length);
    if (requests === 0) expect(round.length).toBe(FIRST);
    requests += round.length;
    for (const call of round) call.answer(allocated(1n));
    await settle();
  }
  expect([asked.answered(), requests]).toEqual([1_000, 1_000]);
  expect(most).toBeLessThanOrEqual(MOST);
});

test("when a server goes silent, what waits for it goes to another one without having been sent, and without budget", async () => {
  const world = fakeWorld({ addresses: ["a:1", "b:1"] });
  const asked = await askCold(world, 400);
  const to = (address: string) =>
    world.transport.pending.filter(({ endpoint }) => endpoint === address);
  expect([to("a:1").length, to("b:1").length]).toEqual([FIRST, FIRST]);
  const [first] = to("a:1");
  world.transport.pending.splice(world.transport.pending.indexOf(first!), 1);
  first!.fail(away);
  await settle();
  // The others of the silent one are still under way; nothing new was sent there.
  expect(to("a:1").length).toBe(FIRST - 1);
  for (;;) {
    const answers = to("b:1");
    if (answers.length === 0) break;
    for (const call of answers) {
      world.transport.pending.splice(world.transport.pending.indexOf(call), 1);
      call.answer(allocated(1n));
    }
    await settle();
  }
  expect(asked.answered()).toBe(400 - (FIRST - 1));
});

/** Takes what is under way to a server out of the transport's hands. */
function takenFrom(world: FakeWorld, address: string): PendingAllocate[] {
  const { pending } = world.transport;
  const taken = pending.filter(({ endpoint }) => endpoint === address);
  for (const call of taken) pending.splice(pending.indexOf(call), 1);
  return taken;
}

test("what waits for a server that was heard and then froze is sent to one that is well, and not there one by one", async () => {
  const world = fakeWorld({ addresses: ["a:1", "b:1"] });
  const asked = await askCold(world, 400);
  world.time.advance(10);
  const [heard, ...frozen] = takenFrom(world, "a:1");
  heard!.answer(allocated(1n));
  await settle();
  // Its answer let in others.
  frozen.push(...takenFrom(world, "a:1"));
  for (const call of frozen) {
    call.fail(away);
    await settle();
    expect(takenFrom(world, "a:1")).toEqual([]);
  }
  for (let round = takenFrom(world, "b:1"); round.length > 0; round = takenFrom(world, "b:1")) {
    for (const call of round) call.answer(allocated(1n));
    await settle();
  }
  // Beyond its budget of further tries a request that failed ends; those that were never sent need none of it.
  expect(asked.answered()).toBeGreaterThanOrEqual(400 - frozen.length);
});

test("with nobody well, what waits is sent where it waited", async () => {
  const world = fakeWorld({ address: "a:1" });
  const asked = await askCold(world, FIRST + 40);
  world.time.advance(10);
  const [heard, ...frozen] = takenFrom(world, "a:1");
  heard!.answer(allocated(1n));
  for (const call of frozen) call.fail(away);
  await settle();
  const rest = takenFrom(world, "a:1");
  expect(rest.length).toBeGreaterThanOrEqual(LEAST);
  while (rest.length > 0) {
    for (const call of rest.splice(0)) call.answer(allocated(1n));
    await settle();
    rest.push(...takenFrom(world, "a:1"));
  }
  expect(asked.answered()).toBe(1 + 40);
});

test("what keeps a lease does not wait behind cold tags, since reservations end", async () => {
  const { client, transport, time } = await leasedWorld();
  for (let at = 0; at < 400; at++)
    client
      .tag(`cold${at}`)
      .next()
      .catch(() => undefined);
  await settle();
  expect(transport.pending.length).toBe(FIRST);
  time.advance(1_000);
  await settle();
  expect(transport.renewing.length).toBe(1);
});

/** After how long requests to a server are given up that was heard at those times; all in milliseconds. */
async function givenUpAfter(timeoutMs: number, heardAt: readonly number[]): Promise<number> {
  const patience = new Patience();
  const start = performance.now();
  for (const ms of heardAt) setTimeout(() => patience.heard("a:1"), ms);
  await new Promise<void>((resolve) => {
    patience.watch("a:1", timeoutMs, resolve);
  });
  return performance.now() - start;
}

function every(ms: number, until: number): readonly number[] {
  return Array.from({ length: until / ms }, (_, at) => at * ms);
}

test("a request is given up in time if its server is silent, and at twice its time if the server answers others", async () => {
  const [silent, alive, fellSilent] = await Promise.all([
    givenUpAfter(400, []),
    givenUpAfter(400, every(10, 2_000)),
    givenUpAfter(400, every(10, 350)),
  ]);
  // Timers may be a millisecond early, and late by what a busy machine makes of it.
  expect(silent).toBeGreaterThan(398);
  expect(silent).toBeLessThan(600);
  expect(alive).toBeGreaterThan(798);
  expect(alive).toBeLessThan(1_200);
  expect(fellSilent).toBeGreaterThan(398);
  expect(fellSilent).toBeLessThan(700);
});

test("a request that is over is not given up", async () => {
  const patience = new Patience();
  let isGivenUp = false;
  patience.watch("a:1", 10, () => (isGivenUp = true))();
  await pause(50);
  expect(isGivenUp).toBe(false);
});

test("the server is told the time of each request", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const [server] = servers;
  const client = createIdClient({ address: server!.address, rpcDeadlineMs: 1_234 });
  onTestFinished(() => client.close());
  await client.tag("orders").next();
  const [leftMs] = server!.leftMs;
  expect(leftMs).toBeGreaterThan(234);
  expect(leftMs).toBeLessThanOrEqual(1_234);
});
