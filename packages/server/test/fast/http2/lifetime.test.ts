import { expect, test } from "vitest";
import { AwakeTime } from "../../../src/fast/http2/lifetime.ts";
import { FLAG, FRAME } from "../../../src/fast/http2/frames.ts";
import {
  data,
  frame,
  HELLO,
  request,
  settings,
  SETTINGS_ACK,
  TestConnection,
  told,
} from "../test-connection.ts";
import { PREFACE } from "../../../src/fast/http2/frames.ts";

const PING = frame(FRAME.PING, FLAG.ACK, 0, Buffer.alloc(8));

test("settings must be acknowledged in time", () => {
  const it = new TestConnection();
  it.send(PREFACE, settings());
  expect(it.look(9_999)).toEqual([]);
  // Without a word: to a client that reads it together with our settings a GOAWAY does harm.
  expect(it.look(10_000)).toEqual([]);
  expect(it.isEnded).toBe(true);
  it.look(14_999);
  expect(it.isDestroyed).toBe(false);
  it.look(15_000);
  expect(it.isDestroyed).toBe(true);
  const good = new TestConnection();
  good.send(PREFACE, settings());
  good.look(9_999);
  good.send(SETTINGS_ACK);
  expect(good.look(10_000)).toEqual([]);
});

test("a peer hears that it is to go when it has shown that it reads", () => {
  const it = new TestConnection();
  it.send(PREFACE, settings());
  it.connection.leave();
  it.connection.leave();
  expect(it.sent()).toEqual([]);
  expect(it.look(999)).toEqual([]);
  expect(it.send(SETTINGS_ACK)).toEqual(["GOAWAY 2147483647 NO_ERROR", "PING"]);
  it.connection.leave();
  expect(it.send(request(1, "/echo", FLAG.END_STREAM))).toEqual([
    "HEADERS 1",
    "DATA 1 0",
    "HEADERS 1 END",
  ]);
  expect(it.isEnded).toBe(false);
  // A stream shows it too: whoever is refused on it hears first that it is to go.
  const eager = new TestConnection();
  eager.send(PREFACE, settings(), request(1, "/hold", FLAG.END_STREAM));
  eager.connection.leave();
  expect(eager.sent().map(told)).toEqual(["GOAWAY 2147483647 NO_ERROR", "PING"]);
});

test("a peer that is to go and does not show that it reads is left without a word", () => {
  for (const hello of [[], [PREFACE], [PREFACE, settings()]]) {
    const it = new TestConnection();
    it.send(...hello);
    it.look(500);
    it.connection.leave();
    expect(it.look(1_499)).toEqual([]);
    expect(it.isEnded).toBe(false);
    expect(it.look(1_500)).toEqual([]);
    expect(it.isEnded).toBe(true);
  }
});

test("a peer that is silent is asked, and given up when it does not answer", () => {
  const it = new TestConnection();
  it.send(HELLO);
  expect(it.look(1_000)).toEqual([]);
  expect(it.look(30_999)).toEqual([]);
  expect(it.look(31_000)).toEqual(["PING"]);
  it.send(PING);
  expect(it.look(50_999)).toEqual([]);
  expect(it.look(80_999)).toEqual(["PING"]);
  expect(it.look(100_998)).toEqual([]);
  expect(it.look(100_999)).toEqual(["GOAWAY 0 NO_ERROR"]);
  expect(it.isEnded).toBe(true);
});

test("a connection that is too old lets its calls end, but not for ever", () => {
  const it = new TestConnection({}, 60_000);
  it.send(HELLO, request(1, "/hold", FLAG.END_STREAM));
  it.look(1);
  expect(it.look(59_999)).toEqual(["PING"]);
  it.send(PING);
  expect(it.look(60_000)).toEqual(["GOAWAY 2147483647 NO_ERROR", "PING"]);
  it.send(request(3, "/hold"), data(3, Buffer.alloc(1)));
  expect(it.look(64_999)).toEqual([]);
  // Without an answer to the PING.
  expect(it.look(65_000)).toEqual(["GOAWAY 3 NO_ERROR"]);
  it.send(PING);
  expect(it.look(89_999)).toEqual([]);
  expect(it.left).toBe(0);
  // They are told once, and have some time to say why they end.
  expect(it.look(90_000)).toEqual([]);
  expect(it.look(94_999)).toEqual([]);
  expect(it.left).toBe(2);
  expect(it.look(95_000)).toEqual(["GOAWAY 3 NO_ERROR"]);
  expect(it.isEnded).toBe(true);
});

test("a connection that was told to go before grows old all the same, if calls stay on it", () => {
  const it = new TestConnection({}, 60_000);
  it.send(HELLO, request(1, "/hold", FLAG.END_STREAM));
  it.look(1);
  it.connection.leave();
  it.sent();
  expect(it.look(5_001)).toEqual(["GOAWAY 1 NO_ERROR"]);
  expect(it.look(59_999)).toEqual(["PING"]);
  it.send(PING);
  expect(it.left).toBe(0);
  expect(it.look(60_000)).toEqual([]);
  expect(it.left).toBe(1);
  expect(it.look(64_999)).toEqual([]);
  expect(it.look(65_000)).toEqual(["GOAWAY 1 NO_ERROR"]);
  expect(it.isEnded).toBe(true);
});

test("a connection that is too old ends as soon as its calls have said their last", () => {
  const it = new TestConnection({}, 60_000);
  it.send(HELLO, request(1, "/echo"));
  it.look(1);
  expect(it.look(59_999)).toEqual(["PING"]);
  it.send(PING);
  it.look(60_000);
  expect(it.look(65_000)).toEqual(["GOAWAY 1 NO_ERROR"]);
  it.send(PING);
  const last = it.look(91_000);
  expect(last).toContain("HEADERS 1 END");
  expect(it.isEnded).toBe(true);
});

test("what a peer sends that was told to go is thrown away, and not for ever", () => {
  const it = new TestConnection();
  it.send(Buffer.from("GET / HTTP/1.1\r\n\r\n"));
  expect(it.isEnded).toBe(true);
  it.connection.receive(Buffer.alloc(64 * 1_024));
  expect(it.isDestroyed).toBe(false);
  it.connection.receive(Buffer.alloc(1));
  expect(it.isDestroyed).toBe(true);
});

test("the time in which a process was stopped does not count", () => {
  const awake = new AwakeTime(1_000, 500);
  awake.tick(1_250);
  expect(awake.now).toBe(250);
  awake.tick(900_000);
  expect(awake.now).toBe(750);
});
