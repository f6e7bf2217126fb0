// One server's alarms without a queue, and a real receiver.
import { IdmintError } from "@idmint/core";
import { expect, onTestFinished, test } from "vitest";
import { Alarms, type AlarmsPorts } from "../../src/alarms/alarms.ts";
import { webhook } from "../../src/alarms/webhook.ts";
import { realSystem } from "../../src/main/system.ts";
import type { ServerEvent } from "../../src/service/events.ts";
import { sleep, startTest, until } from "../support.ts";
import { Receiver } from "./receiver.ts";

const FENCED = { type: "fenced", tag: "orders", detail: "d" } as const;
const TOKEN = "sesame-4711";

function alarmsTo(
  receiver: Receiver,
  {
    lastingMs = 30_000,
    timeoutMs = 2_000,
    ...ports
  }: Partial<AlarmsPorts> & {
    lastingMs?: number;
    timeoutMs?: number;
  } = {},
): { alarms: Alarms; events: ServerEvent[] } {
  const events: ServerEvent[] = [];
  const alarms = new Alarms(
    {
      ...realSystem,
      queue: undefined,
      deliver: webhook({ url: receiver.url("/hook/secret-path"), token: TOKEN, timeoutMs }),
      newId: realSystem.randomToken,
      emit: (event) => events.push(event),
      // Retries after half a second at first.
      random: () => 0,
      ...ports,
    },
    { lastingMs, grpcPort: 7600 },
  );
  onTestFinished(() => alarms.close());
  return { alarms, events };
}

test("an alarm is one POST of JSON, with the token", async () => {
  const receiver = await Receiver.start();
  const { alarms } = alarmsTo(receiver);
  alarms.hear(FENCED);
  await until(() => receiver.received.length === 1);
  const [{ path, headers, alarm } = { path: "", headers: {}, alarm: undefined }] =
    receiver.received;
  expect(path).toBe("/hook/secret-path");
  expect(headers).toMatchObject({
    authorization: `Bearer ${TOKEN}`,
    "content-type": "application/json",
  });
  expect(alarm).toEqual({
    id: expect.stringMatching(/^.{22}$/) as string,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
    server: expect.stringMatching(/.:7600$/) as string,
    alarm: "STORE_WENT_BACK",
    key: "STORE_WENT_BACK",
    severity: "critical",
    summary: expect.stringMatching(/^The store went back/) as string,
    details: { tag: "orders", detail: "d" },
  });
});

test("while the receiver is away, refuses, is silent or sends elsewhere, it is tried again until it takes the alarm, once", async () => {
  const receiver = await Receiver.start();
  const elsewhere = await Receiver.start();
  await receiver.close();
  const { timers } = realSystem;
  const { alarms, events } = alarmsTo(receiver, {
    timeoutMs: 200,
    timers: { after: (delayMs, run) => timers.after(delayMs / 10, run) },
  });
  alarms.hear(FENCED);
  const failed = () => events.filter((event) => event.type === "alarm-failed");
  await until(() => failed().length === 1);
  await receiver.open();
  receiver.answer = (response) => response.writeHead(503).end();
  await until(() => failed().length === 2);
  receiver.answer = (response) =>
    response.writeHead(307, { location: elsewhere.url("/else") }).end();
  await until(() => failed().length === 3);
  receiver.answer = () => undefined;
  await until(() => failed().length === 4);
  receiver.answer = (response) => response.end();
  await until(() => events.some(({ type }) => type === "alarm-delivered"));
  // A slow receiver may be found silent once more before it answers.
  expect([...new Set(failed().map(({ why }) => why))]).toEqual([
    "it cannot be reached (ECONNREFUSED)",
    "it answered with HTTP status 503",
    "it answered with HTTP status 307",
    "no answer within 200 ms",
  ]);
  // The same at every delivery, so that a receiver can know it again.
  expect(new Set(receiver.received.map(({ alarm }) => alarm.id)).size).toBe(1);
  expect(elsewhere.received).toEqual([]);
  await sleep(100);
  expect(receiver.received).toHaveLength(failed().length);
  const said = JSON.stringify(events);
  expect(said).not.toContain(TOKEN);
  expect(said).not.toContain("secret-path");
});

test("the same key within a minute is one alarm; others come in their order, behind the one that is tried", async () => {
  const receiver = await Receiver.start();
  receiver.answer = (response) => response.writeHead(500).end();
  const { alarms } = alarmsTo(receiver);
  for (let turn = 0; turn < 100; turn++) alarms.hear({ ...FENCED, tag: `tag-${turn}` });
  for (const tag of ["a", "b", "a"]) {
    alarms.hear({ type: "max-not-raised", tag, redisServer: "x", max: 1n, error: undefined });
  }
  await until(() => receiver.received.length === 1);
  receiver.answer = (response) => response.end();
  await until(() => receiver.received.length === 4);
  await sleep(50);
  expect(receiver.keys).toEqual([
    "STORE_WENT_BACK",
    "STORE_WENT_BACK",
    "MAX_NOT_RAISED:a",
    "MAX_NOT_RAISED:b",
  ]);
});

test("a trouble that is over in time is none, and one that lasts is told", async () => {
  const receiver = await Receiver.start();
  const { alarms } = alarmsTo(receiver, { lastingMs: 150 });
  const error = new IdmintError("STORE_UNAVAILABLE", "it is down");
  alarms.hear({ type: "store-lost", error });
  alarms.hear({ type: "redis-lost", redisServer: "a", why: "ECONNREFUSED" });
  await sleep(50);
  alarms.hear({ type: "store-back", afterMs: 50 });
  expect(receiver.received).toEqual([]);
  await until(() => receiver.received.length === 1);
  await sleep(200);
  expect(receiver.keys).toEqual(["REDIS_LOST:a"]);
});

test("a clock that went back is told of once, whatever tags it shows in; one that was ahead for a moment is not", async () => {
  const receiver = await Receiver.start();
  const { alarms } = alarmsTo(receiver, { lastingMs: 150 });
  const refused = { type: "clock-refused", driftMs: -4_000, detail: "d" } as const;
  alarms.hear({ ...refused, tag: undefined, why: "ahead" });
  await sleep(50);
  alarms.hear({ type: "clock-recovered", tag: undefined, afterMs: 50 });
  await sleep(200);
  expect(receiver.received).toEqual([]);
  for (const tag of ["a", "b"]) alarms.hear({ ...refused, tag, why: "went-back" });
  alarms.hear({ type: "clock-recovered", tag: "a", afterMs: 1 });
  await until(() => receiver.received.length === 1);
  await sleep(200);
  expect(receiver.keys).toEqual([`CLOCK_REFUSED:${receiver.received[0]?.alarm.server}`]);
  expect(receiver.received[0]?.alarm).toMatchObject({
    severity: "critical",
    details: { tag: "a", why: "went-back", driftMs: "-4000", detail: "d" },
  });
});

test("a server that stops tries once more, and not for long; what nobody took is told of", async () => {
  const receiver = await Receiver.start();
  receiver.answer = (response) => response.writeHead(500).end();
  const first = alarmsTo(receiver, { random: () => 1 });
  first.alarms.hear(FENCED);
  await until(() => first.events.some(({ type }) => type === "alarm-failed"));
  receiver.answer = (response) => response.end();
  await first.alarms.close();
  expect(first.events.at(-1)).toMatchObject({ type: "alarm-delivered" });
  receiver.answer = () => undefined;
  const second = alarmsTo(receiver, { timeoutMs: 60_000 });
  second.alarms.hear(FENCED);
  await until(() => receiver.received.length === 3);
  const start = performance.now();
  await second.alarms.close();
  expect(performance.now() - start).toBeLessThan(2_500);
  expect(second.events.at(-1)).toMatchObject({ type: "alarm-dropped", key: "STORE_WENT_BACK" });
  second.alarms.hear(FENCED);
  await sleep(50);
  expect(receiver.received).toHaveLength(3);
});

test("an alarm that nobody takes for a day is given up with a word, and the next one has its turn", async () => {
  const receiver = await Receiver.start();
  let now = Date.now();
  receiver.answer = (response) => {
    now += 86_400_001;
    receiver.answer = (next) => next.end();
    response.writeHead(500).end();
  };
  const { alarms, events } = alarmsTo(receiver, { wallClock: () => now });
  alarms.hear(FENCED);
  alarms.hear({ type: "store-accepted", gap: 1n, tags: 1 });
  await until(() => events.some(({ type }) => type === "alarm-delivered"));
  expect(events).toContainEqual(
    expect.objectContaining({ type: "alarm-dropped", key: "STORE_WENT_BACK" }),
  );
  expect(receiver.keys).toEqual(["STORE_WENT_BACK", "STORE_ACCEPTED"]);
});

test("a whole server tells of a store that went back, and its log holds no secret", async () => {
  const receiver = await Receiver.start();
  receiver.answer = (response) => response.writeHead(401).end();
  const lines: string[] = [];
  const server = await startTest({
    env: {
      IDMINT_ALARM_WEBHOOK_URL: receiver.url("/hook/secret-path"),
      IDMINT_ALARM_WEBHOOK_TOKEN: TOKEN,
      IDMINT_LOG_LEVEL: "trace",
    },
    parts: { logSink: { write: (line) => lines.push(line) } },
  });
  server.store.database.move();
  await until(() => receiver.received.length === 1);
  receiver.answer = (response) => response.end();
  await until(() => lines.some((line) => line.includes("delivered an alarm to the webhook")));
  expect(lines.join()).toContain("HTTP status 401");
  expect(lines.join()).not.toMatch(/secret-path|sesame/);
});
