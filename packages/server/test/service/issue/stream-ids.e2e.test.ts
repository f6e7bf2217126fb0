import { type ClientDuplexStream, status } from "@grpc/grpc-js";
import type {
  GenerateIdResponse,
  GenerateIdsResponse,
  StreamIdsRequest,
  StreamIdsResponse,
} from "@idmint/proto";
import { ErrorInfo } from "@idmint/proto/rpc";
import { MemoryStore } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createTag, idsOf, startTest, type TestServer, until } from "../../support.ts";

type Stream = ClientDuplexStream<Partial<StreamIdsRequest>, StreamIdsResponse>;

/** A stream, everything it answered, and how it ended. */
function open({ ids }: Pick<TestServer, "ids">) {
  const stream = ids.streamIds() as unknown as Stream;
  const answers: StreamIdsResponse[] = [];
  const end: { code?: number; isOver: boolean } = { isOver: false };
  stream.on("data", (answer: StreamIdsResponse) => answers.push(answer));
  stream.on("error", () => undefined);
  stream.on("status", ({ code }: { code: number }) => Object.assign(end, { code, isOver: true }));
  onTestFinished(() => stream.cancel());
  let next = 0;
  const ask = (request: Partial<StreamIdsRequest>): number => {
    const call = ++next;
    stream.write({ call, tag: "", count: 0, name: "", ...request });
    return call;
  };
  return { stream, answers, end, ask };
}

function oneOf({ result }: StreamIdsResponse): GenerateIdResponse | undefined {
  return result?.$case === "one" ? result.value : undefined;
}

function manyOf({ result }: StreamIdsResponse): GenerateIdsResponse | undefined {
  return result?.$case === "many" ? result.value : undefined;
}

function reasonOf({ result }: StreamIdsResponse): string | undefined {
  if (result?.$case !== "error") return undefined;
  const info = result.value.details.find(({ typeUrl }) => typeUrl.endsWith("ErrorInfo"));
  return info === undefined ? undefined : ErrorInfo.decode(info.value).reason;
}

test("every request is answered once, by its number, with ids of its own", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const { answers, ask, stream, end } = open(it);
  ask({ tag: "orders" });
  for (let i = 1; i < 5_000; i++) ask({});
  stream.end();
  await until(() => end.isOver);
  expect(end.code).toBe(status.OK);
  expect(answers.map(({ call }) => call).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 5_000 }, (_, i) => i + 1),
  );
  expect(new Set(answers.map((answer) => oneOf(answer)?.id)).size).toBe(5_000);
  expect(answers.every((answer) => oneOf(answer)?.epoch === 1n)).toBe(true);
});

test("a count answers segments, and one stream may change its tag", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  await createTag(it, "bills");
  const { answers, ask } = open(it);
  ask({ tag: "orders", count: 250 });
  ask({ tag: "bills" });
  ask({});
  await until(() => answers.length === 3);
  const byCall = answers.toSorted((a, b) => a.call - b.call);
  expect(idsOf(manyOf(byCall[0]!)?.segments ?? [])).toHaveLength(250);
  expect(byCall.slice(1).map((answer) => oneOf(answer)?.id)).toEqual([1n, 2n]);
});

test("a refusal answers its own request only", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const { answers, ask } = open(it);
  ask({});
  ask({ tag: "nowhere" });
  ask({ tag: "orders", count: -1 });
  ask({ tag: "orders", count: 100_000_000 });
  ask({ tag: "orders" });
  await until(() => answers.length === 5);
  const byCall = answers.toSorted((a, b) => a.call - b.call);
  expect(byCall.map(reasonOf)).toEqual([
    "FIELD_REQUIRED",
    "TAG_NOT_FOUND",
    "COUNT_OUT_OF_RANGE",
    "COUNT_OUT_OF_RANGE",
    undefined,
  ]);
  expect(oneOf(byCall[4]!)?.id).toBe(1n);
});

test("requests that wait are answered when the load comes, and do not hold up those that need not wait", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "warm");
  await createTag(it, "cold");
  const { answers, ask } = open(it);
  ask({ tag: "warm" });
  await until(() => answers.length === 1);
  const gate = Promise.withResolvers<void>();
  store.faults.before = async (operation) => {
    if (operation === "grant") await gate.promise;
  };
  const waiting = ask({ tag: "cold" });
  const quick = ask({ tag: "warm" });
  await until(() => answers.length === 2);
  expect(answers[1]?.call).toBe(quick);
  gate.resolve();
  await until(() => answers.length === 3);
  expect(answers[2]).toMatchObject({ call: waiting, result: { value: { id: 1n } } });
});

test("more requests than may wait are read no further, and all are answered in the end", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "cold");
  const gate = Promise.withResolvers<void>();
  store.faults.before = async (operation) => {
    if (operation === "grant") await gate.promise;
  };
  const { answers, ask } = open(it);
  ask({ tag: "cold" });
  for (let i = 1; i < 4_000; i++) ask({});
  await until(() => it.server.counters.calls >= 1_024);
  expect(it.server.counters.calls).toBeLessThan(1_500);
  gate.resolve();
  await until(() => answers.length === 4_000);
  expect(new Set(answers.map((answer) => oneOf(answer)?.id)).size).toBe(4_000);
});

test("bytes that are no request end the stream", async () => {
  const it = await startTest();
  const stream = it.ids.makeBidiStreamRequest(
    "/idmint.v1.IdService/StreamIds",
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => bytes,
  );
  const code = new Promise<number>((resolve) => {
    stream.on("status", (ended: { code: number }) => resolve(ended.code));
  });
  stream.on("error", () => undefined);
  stream.on("data", () => undefined);
  stream.write(Buffer.from([0xff, 0xff, 0xff]));
  expect(await code).toBe(status.INVALID_ARGUMENT);
});

test("a server that stops answers what waits and ends its streams with UNAVAILABLE", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const { answers, ask, end } = open(it);
  ask({ tag: "orders" });
  await until(() => answers.length === 1);
  await it.server.close();
  await until(() => end.isOver);
  expect(end.code).toBe(status.UNAVAILABLE);
});

test("a stream that breaks leaves the others alone", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const broken = open(it);
  const whole = open(it);
  broken.ask({ tag: "orders" });
  broken.stream.cancel();
  whole.ask({ tag: "orders" });
  await until(() => whole.answers.length === 1);
  expect(reasonOf(whole.answers[0]!)).toBeUndefined();
});
