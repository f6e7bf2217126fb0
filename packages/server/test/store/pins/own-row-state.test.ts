import { expect, test } from "vitest";
import { lossOf } from "../../../src/store/pins/own-row-state.ts";
import { type Local, OwnRow } from "../../../src/store/postgres/hosts/own-row.ts";

const known = { id: "s", renewals: 100n, history: "one", storeMs: 5_000, atMs: 7_000 };
const found = {
  history: "one",
  renewals: 100n as bigint | undefined,
  forgotten: undefined as bigint | undefined,
  storeMs: 6_000,
  atMs: 8_000,
};

test("a row that is as high as it was, or of another history, shows nothing", () => {
  expect(lossOf(known, found)).toBe("");
  expect(lossOf(known, { ...found, renewals: 101n })).toBe("");
  expect(lossOf(known, { ...found, renewals: 1n, history: "two" })).toBe("");
  expect(lossOf(known, { ...found, renewals: undefined, history: "two" })).toBe("");
});

test("a lower number shows that the store went back, however long ago it was renewed", () => {
  const loss = "the row of server s is at 99, after 100 was answered";
  expect(lossOf(known, { ...found, renewals: 99n })).toBe(loss);
  expect(lossOf(known, { ...found, renewals: 99n, storeMs: 9e12, atMs: 9e12 })).toBe(loss);
});

test("a row that is gone without a trace shows it for as long as traces are surely kept", () => {
  const gone = { ...found, renewals: undefined };
  const loss = "the row of server s is gone, and nobody forgot it";
  const limit = 1_800_000;
  expect(lossOf(known, gone)).toBe(loss);
  expect(lossOf(known, { ...gone, forgotten: 99n })).toBe(loss);
  expect(lossOf(known, { ...gone, forgotten: 100n })).toBe("");
  expect(lossOf(known, { ...gone, storeMs: 5_000 + limit - 1, atMs: 7_000 + limit - 1 })).toBe(
    loss,
  );
  expect(lossOf(known, { ...gone, storeMs: 5_000 + limit })).toBe("");
  expect(lossOf(known, { ...gone, atMs: 7_000 + limit })).toBe("");
});

function renewalOf(id: string): Parameters<OwnRow["expected"]>[0] {
  const info = { instance: id, address: "", version: "", zone: "", startedAtMs: 0 };
  return { node: { ...info, id, maxOfflineMs: undefined } };
}

/** The statements that a server asks, all of which find what they look for. */
function askedBy(): { local: Local; asked: unknown[][] } {
  const asked: unknown[][] = [];
  const ask = (async ({ values }: { values: readonly unknown[] }) => {
    asked.push([...values]);
    return [{}];
  }) as unknown as Local["ask"];
  return { local: { allowUnsafe: [], ask }, asked };
}

test("a primary from before a promotion is marked, and a promoted standby is another history", async () => {
  const { local, asked } = askedBy();
  const row = new OwnRow();
  const polled = { id: "s", incarnation: "one", nowMs: 1, renewals: 5n };
  expect(await row.polled(local, { ...polled, identity: "7/00000002/1" })).toBe("");
  expect(row.expected(renewalOf("s"))).toEqual(["5", "one 7/00000002/1", false]);
  expect(row.expected(renewalOf("other"))).toEqual([null, "", true]);
  expect(await row.polled(local, { ...polled, identity: "7/0000000A/1" })).toBe("");
  expect(asked).toEqual([]);
  const old = await row.polled(local, { ...polled, identity: "7/00000009/1" });
  expect(old).toContain("from before a standby was promoted");
  expect(asked).toMatchObject([[expect.any(String), "one", "7/00000009/1", []]]);
});
