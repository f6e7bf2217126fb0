import { createServer, connect, type AddressInfo } from "node:net";
import { once } from "node:events";
import { GenerateIdResponse, StreamIdsResponse } from "@idmint/proto";
import { expect, test } from "vitest";
import { interleaved, samplesOf } from "../bench/lib/benchmark.ts";
import { DelayProxy } from "../bench/lib/delay-proxy.ts";
import { atMost, type Figure, ratioAtLeast, summaryOf } from "../bench/lib/figure.ts";
import { columns } from "../bench/lib/format.ts";
import { framed, resultOf } from "../bench/lib/h2load.ts";
import { frame, FrameReader } from "../bench/lib/http2-frames.ts";
import { Subject } from "../bench/lib/process.ts";
import { median, percentile, spread } from "../bench/lib/statistics.ts";
import { StreamAnswers } from "../bench/lib/stream-answers.ts";
import { oscillations, simulateHour, worstFactor } from "../bench/server/sizing.ts";

test("medians, spreads and percentiles are those of the values, and nothing is made up of none", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(spread([3, 1, 2])).toEqual([1, 3]);
  const hundred = Float64Array.from({ length: 100 }, (_, i) => i + 1);
  expect(percentile(hundred, 0.5)).toBe(50);
  expect(percentile(hundred, 0.99)).toBe(99);
  expect(percentile(hundred, 0.999)).toBe(100);
  expect(percentile(Float64Array.of(7), 0.001)).toBe(7);
  expect(() => median([])).toThrow(RangeError);
  expect(() => spread([])).toThrow(RangeError);
  expect(() => percentile(new Float64Array(0), 0.5)).toThrow(RangeError);
});

const figure: Figure = {
  id: "a.b",
  text: "a",
  unit: "calls/s",
  peer: "floor",
  // The ratios are 0.9, 0.8 and 1.0; the ratio of the medians would be 0.95.
  samples: [
    { ours: 90, peer: 100 },
    { ours: 160, peer: 200 },
    { ours: 95, peer: 95 },
  ],
  bar: ratioAtLeast(0.9),
};

test("a ratio is the median of the rounds' own ratios, and is judged by its bar", () => {
  const summary = summaryOf(figure, true);
  expect(summary).toMatchObject({ ours: 95, peerValue: 100, ratio: 0.9, verdict: "met" });
  expect(summary.ratioSpread).toEqual([0.8, 1]);
  expect(summaryOf({ ...figure, bar: ratioAtLeast(0.91) }, true).verdict).toBe("missed");
  expect(summaryOf({ ...figure, bar: atMost(94) }, true).verdict).toBe("missed");
  expect(summaryOf({ ...figure, bar: atMost(95) }, true).verdict).toBe("met");
  expect(summaryOf(figure, false).verdict).toBe("not judged");
  const { bar: _bar, ...shown } = figure;
  expect(summaryOf(shown, true).verdict).toBe("shown");
  expect(() => summaryOf({ ...figure, samples: [{ ours: 1 }] }, true)).toThrow(RangeError);
});

test("a summary is printed with its unit, its peer, its spread and its verdict", () => {
  expect(columns(summaryOf(figure, true))).toEqual([
    "a",
    "95 calls/s (90 … 160)",
    "100 calls/s, floor",
    "0.900 × (0.800 … 1)",
    "≥ 0.900 ×",
    "met",
  ]);
});

test("everything is measured once a round, each round in another order", async () => {
  const order: string[] = [];
  const measure = (name: string) => async () => {
    order.push(name);
    return order.length;
  };
  const results = await interleaved({ rounds: 3 }, { a: measure("a"), b: measure("b") });
  expect(order.join("")).toBe("abbaab");
  expect(results).toEqual({ a: [1, 4, 5], b: [2, 3, 6] });
  expect(samplesOf(results.a, results.b, Number)).toEqual([
    { ours: 1, peer: 2 },
    { ours: 4, peer: 3 },
    { ours: 5, peer: 6 },
  ]);
});

test("what h2load says is read: calls, failures, bytes, latencies and its own processor time", () => {
  const output = `
finished in 2.00s, 1234.50 req/s, 5.00KB/s
requests: 12 total, 12 started, 10 done, 9 succeeded, 1 failed, 0 errored, 2 timeout
status codes: 9 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 1.00KB (1024) total, 512B (512) headers (space savings 90.00%), 90B (90) data
0m0.010000s 0m0.000000s
0m0.100000s 1m0.080000s
`;
  const log = "1\t200\t1000\n2\t200\t3000\n3\t-1\t9\n4\t200\t2000\n";
  expect(resultOf(output, log)).toEqual({
    answered: 9,
    failed: 3,
    bytes: 90,
    callsPerSecond: 1234.5,
    p50: 2,
    p99: 3,
    p999: 3,
    generatorCpuUs: (60.18 / 9) * 1e6,
  });
  expect(() => resultOf("nothing", log)).toThrow("h2load did not say");
});

test("a message is framed as gRPC has it", () => {
  expect([...framed(Uint8Array.of(7, 8))]).toEqual([0, 0, 0, 0, 2, 7, 8]);
});

test("frames of HTTP/2 are read wherever their bytes are cut", () => {
  const bytes = Buffer.concat([
    frame(0, 1, 1, Uint8Array.of(1, 2, 3)),
    frame(4, 0, 0, new Uint8Array(0)),
    frame(8, 0, 2 ** 30, Uint8Array.of(0, 0, 0, 9)),
  ]);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const seen: unknown[] = [];
    const reader = new FrameReader((type, flags, stream, payload) =>
      seen.push([type, flags, stream, [...payload]]),
    );
    reader.read(bytes.subarray(0, cut));
    reader.read(bytes.subarray(cut));
    expect(seen).toEqual([
      [0, 1, 1, [1, 2, 3]],
      [4, 0, 0, []],
      [8, 0, 2 ** 30, [0, 0, 0, 9]],
    ]);
  }
});

const answer = (call: number, result: StreamIdsResponse["result"]): Buffer =>
  framed(StreamIdsResponse.encode({ call, result }).finish());
const one = (id: bigint): StreamIdsResponse["result"] => ({
  $case: "one",
  value: GenerateIdResponse.fromPartial({ id, epoch: 1n }),
});

test("each request on a stream is answered once, wherever the bytes of the answers are cut", () => {
  const bytes = Buffer.concat([answer(300, one(2n ** 62n)), answer(1, one(7n))]);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const answers = new StreamAnswers();
    answers.sent(1, 10);
    answers.sent(300, 11);
    answers.read(bytes.subarray(0, cut), 15);
    answers.read(bytes.subarray(cut), 15);
    expect(answers.inFlight).toBe(0);
    expect(answers.latencies).toEqual([4, 5]);
  }
});

test("an answer that comes twice, uncalled for, or as a refusal fails the measurement of a stream", () => {
  const answers = new StreamAnswers();
  answers.sent(1, 0);
  expect(() => answers.sent(1 + 4_096, 0)).toThrow("request 1 is not answered");
  expect(() => answers.read(answer(2, one(1n)), 0)).toThrow("not in flight");
  const value = { code: 5, message: "TAG_NOT_FOUND", details: [] };
  expect(() => answersTo(1).read(answer(1, { $case: "error", value }), 0)).toThrow("TAG_NOT_FOUND");
  const once = answersTo(1);
  once.read(answer(1, one(1n)), 0);
  expect(() => once.read(answer(1, one(2n)), 0)).toThrow("not in flight");
  expect(() => answersTo(1).read(answer(0, one(1n)), 0)).toThrow("request 0");
});

test("one answer in a thousand on a stream is looked at, and an id that came before is seen", () => {
  const answers = new StreamAnswers();
  for (let call = 1; call < 2_000; call++) {
    answers.sent(call, 0);
    answers.read(answer(call, one(5n)), 0);
  }
  expect([...answers.sample]).toEqual([5n]);
  answers.sent(2_000, 0);
  expect(() => answers.read(answer(2_000, one(5n)), 0)).toThrow("no id of its own");
});

function answersTo(call: number): StreamAnswers {
  const answers = new StreamAnswers();
  answers.sent(call, 0);
  return answers;
}

/** Code that starts a process which runs other code, and ends its input when it ends itself. */
const start = (code: string): string =>
  `require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(code)}], { stdio: ["pipe", "inherit", "inherit"] })`;

test(
  "processor time is that of a process, of its descendants, and of those of them that ended",
  { timeout: 120_000 },
  async () => {
    const used =
      "const { user, system } = process.cpuUsage(); console.log(`used ${user + system}`);";
    const burn = `while (process.cpuUsage().user < 1e5); ${used}`;
    // A grandchild that burns and ends, a child that burns and stays while its parent lives, a parent that only waits.
    const child = `${start(burn)}.on("exit", () => { ${burn} process.stdin.resume(); });`;
    const parent = `${start(child)}; ${used} setInterval(() => undefined, 1000);`;
    await using subject = new Subject("a family", [process.execPath, "-e", parent]);
    await subject.saying(/(?:used \d+\s+){3}/, 100_000);
    const all = [...subject.output.matchAll(/used (\d+)/g)].map(([, us]) => Number(us) / 1e6);
    const seconds = all.reduce((sum, each) => sum + each, 0);
    // The kernel counts in hundredths, of each process twice.
    expect(subject.cpuSeconds).toBeGreaterThan(seconds - 0.06);
  },
);

test("a delay proxy passes everything, in order, one delay later, and without a delay at once", async () => {
  const echo = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
  await once(echo, "listening");
  await using proxy = await DelayProxy.start({
    host: "127.0.0.1",
    port: (echo.address() as AddressInfo).port,
  });
  const socket = connect({ host: "127.0.0.1", port: proxy.port });
  const roundTrip = async (text: string): Promise<number> => {
    const start = performance.now();
    socket.write(text);
    expect(String((await once(socket, "data"))[0])).toBe(text);
    return performance.now() - start;
  };
  await roundTrip("first");
  proxy.delayMs = 120;
  expect(await roundTrip("slow")).toBeGreaterThanOrEqual(115);
  proxy.delayMs = 0;
  expect(await roundTrip("fast")).toBeLessThan(115);
  socket.destroy();
  echo.close();
});

const load = (size: number, wanted: number) => ({ second: 0, size, wanted });

test("sizes that go to and fro at a steady rate are counted, and those that follow the rate are not", () => {
  const steady = [load(100, 100), load(200, 100), load(100, 100), load(200, 100)];
  expect(oscillations(steady)).toBe(2);
  expect(worstFactor(steady)).toBe(2);
  expect(oscillations([load(100, 100), load(200, 200), load(100, 100)])).toBe(0);
  expect(worstFactor([load(100, 300)])).toBe(3);
});

test("the simulated hour loads segments that fit the rate", async () => {
  const loads = await simulateHour({ min: 100, max: 1_000_000, holdForMs: 60_000 });
  expect(loads.length).toBeGreaterThan(20);
  expect(worstFactor(loads)).toBeLessThan(2);
  expect(oscillations(loads)).toBe(0);
});
