import { expect, test } from "vitest";
import type { CallOptions, IdClient } from "../src/index.ts";
import { createTestIdClient } from "../src/testing.ts";
import { rangesOf, reasonOf, refusal, thrown } from "./support.ts";

test("the stand-in counts up per tag, the same in every run", async () => {
  const client: IdClient = createTestIdClient();
  const tag = client.tag("orders");
  expect(client.tag("orders")).toBe(tag);
  expect(await tag.next()).toBe(1n);
  expect(tag.nextSync()).toBe(2n);
  expect(await tag.nextString()).toBe("3");
  expect(tag.nextStringSync()).toBe("4");
  expect(await tag.nextNumber()).toBe(5);
  expect(tag.nextNumberSync()).toBe(6);
  expect(rangesOf(await tag.take(10))).toBe("7+10");
  const iterated: bigint[] = [];
  for await (const id of tag) {
    iterated.push(id);
    if (iterated.length === 2) break;
  }
  expect(iterated).toEqual([17n, 18n]);
  expect(await client.tag("users").next()).toBe(1n);
  expect(createTestIdClient().tag("orders").issued).toBe(0);
});

test("start and setNext choose the ids", async () => {
  const client = createTestIdClient({ start: 100n });
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(100n);
  tag.setNext(2n ** 53n - 1n);
  expect(tag.nextNumberSync()).toBe(Number.MAX_SAFE_INTEGER);
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("UNSAFE_INTEGER");
  expect(tag.nextSync()).toBe(2n ** 53n);
  expect((await refusal(tag.nextNumber())).metadata["id"]).toBe("9007199254740993");
  expect(() => tag.setNext(-1n)).toThrow(RangeError);
});

test("it fails as it is told to, until it recovers", async () => {
  const tag = createTestIdClient().tag("orders");
  tag.failWith("SERVER_UNAVAILABLE", { retryAfterMs: 7 });
  const error = await refusal(tag.next());
  expect([error.reason, error.retryable, error.retryAfterMs]).toEqual([
    "SERVER_UNAVAILABLE",
    true,
    7,
  ]);
  expect(thrown(() => tag.nextSync()).reason).toBe("SERVER_UNAVAILABLE");
  expect(await reasonOf(tag.take(2))).toBe("SERVER_UNAVAILABLE");
  expect(await reasonOf(tag.warm())).toBe("SERVER_UNAVAILABLE");
  tag.recover();
  expect(await tag.next()).toBe(1n);
});

test("cold, it refuses synchronous calls until it is warmed", async () => {
  const tag = createTestIdClient().tag("orders");
  tag.cool();
  expect(thrown(() => tag.nextSync())).toMatchObject({
    reason: "SEGMENT_NOT_READY",
    message: expect.stringContaining("await tag.warm() first") as string,
  });
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("SEGMENT_NOT_READY");
  await tag.warm();
  expect(tag.nextSync()).toBe(1n);
});

test("it ends where it is told to, all or nothing", async () => {
  const tag = createTestIdClient().tag("orders");
  tag.endAt(3n);
  expect(await tag.next()).toBe(1n);
  expect(await reasonOf(tag.take(3))).toBe("TAG_EXHAUSTED");
  expect(rangesOf(await tag.take(2))).toBe("2+2");
  expect(thrown(() => tag.nextSync()).reason).toBe("TAG_EXHAUSTED");
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("TAG_EXHAUSTED");
});

test("it refuses bad arguments, aborted signals and use after close as the real one does", async () => {
  const client = createTestIdClient();
  const tag = client.tag("orders");
  expect(thrown(() => client.tag("-")).reason).toBe("INVALID_NAME");
  expect(await reasonOf(tag.take(0))).toBe("COUNT_OUT_OF_RANGE");
  expect(await reasonOf(tag.next({ deadlineMs: 0 }))).toBe("INVALID_ARGUMENT");
  expect(await reasonOf(tag.next({ signal: AbortSignal.abort() }))).toBe("CALL_CANCELLED");
  expect(tag.issued).toBe(0);
  await client.close();
  expect(await reasonOf(tag.next())).toBe("CLIENT_CLOSED");
  expect(thrown(() => tag.nextSync()).reason).toBe("CLIENT_CLOSED");
  expect(thrown(() => client.tag("other")).reason).toBe("CLIENT_CLOSED");
});

test("as a tag of another kind it refuses what the kind has no answer to", async () => {
  const tag = createTestIdClient().tag("orders");
  tag.setKind("sequence");
  expect(await tag.next()).toBe(1n);
  expect(thrown(() => tag.nextSync()).reason).toBe("WRONG_KIND");
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("WRONG_KIND");
  expect(await reasonOf(tag.warm())).toBe("WRONG_KIND");
  expect(await reasonOf(tag.take(2))).toBe("WRONG_KIND");
  expect(await reasonOf(tag.nextPeriodId())).toBe("WRONG_KIND");
  tag.setKind("ticket");
  expect(rangesOf(await tag.take(2))).toBe("2+2");
  expect(thrown(() => tag.nextSync()).reason).toBe("WRONG_KIND");
  tag.setKind("segment");
  expect(tag.nextSync()).toBe(4n);
});

test("periods begin when a test says so", async () => {
  const tag = createTestIdClient({ start: 100n }).tag("invoices");
  const endsAt = new Date("2026-11-21T16:00:00Z");
  tag.startPeriod("2026-11-21", endsAt);
  expect(await tag.nextPeriodId()).toEqual({
    period: "2026-11-21",
    id: 1n,
    text: "20261121-1",
    endsAt,
  });
  expect(await reasonOf(tag.next())).toBe("WRONG_KIND");
  expect(tag.issued).toBe(1);
  expect((await tag.nextPeriodId()).text).toBe("20261121-2");
  tag.startPeriod("2026-W47");
  expect((await tag.nextPeriodId()).text).toBe("2026W47-1");
});

test("the stand-in refuses what is no name of a tag, and options that are none, as the client does", async () => {
  const client = createTestIdClient();
  for (const name of [undefined, null, 7, {}]) {
    const error = thrown(() => client.tag(name as string));
    expect([error.reason, error.violations.map(({ field }) => field)]).toEqual([
      "INVALID_ARGUMENT",
      ["tag"],
    ]);
  }
  const unknown = { timeoutMs: 5 } as CallOptions;
  expect((await refusal(client.tag("orders").next(unknown))).message).toContain("timeoutMs");
  // As a caller has them who may have none.
  const maybe: { signal: AbortSignal | undefined } = { signal: undefined };
  expect(await client.tag("orders").next(maybe)).toBe(1n);
});
