// Snowflakes from the command line of a real server.
import { expect, test } from "vitest";
import { devServer } from "../../dev-server.ts";
import type { CommandResult } from "../../support.ts";

const { idmint, out, json } = devServer();

interface Decoded {
  readonly time: string;
  readonly snowflake: { readonly sequence: number };
}

test("a plan is what is made; its ids are taken apart, composed again and found by their time", async () => {
  const flags = ["--kind", "snowflake", "--layout", "41-5-5-12", "--data-center", "3"];
  const args = ["tag", "create", "trace", ...flags];
  const { out: plan } = await idmint(...args, "--dry-run", "--json");
  const made = await json<{ tag: object }>(...args);
  expect(made.tag).toMatchObject((JSON.parse(plan) as { tag: object }).tag);

  const before = new Date(Date.now() - 60_000);
  const ids = (await out("id", "next", "trace", "-n", "3")).trim().split("\n");
  expect(new Set(ids).size).toBe(3);
  const [id = ""] = ids;
  const parts = await json<Decoded>("id", "decode", "trace", id);
  expect(parts).toMatchObject({ id, snowflake: { dataCenter: 3, worker: 0, extension: 0 } });
  const { time, snowflake } = parts;
  const fields = ["--time", time, "--worker", "0", "--sequence", String(snowflake.sequence)];
  expect(await out("id", "encode", "trace", ...fields)).toBe(`${id}\n`);
  const after = new Date(Date.now() + 60_000);
  const span = ["--from", before.toISOString(), "--to", after.toISOString()];
  const range = ["id", "range", "trace", ...span];
  const { smallest, largest } = await json<{ smallest: string; largest: string }>(...range);
  for (const each of ids) {
    expect(BigInt(each)).toBeGreaterThanOrEqual(BigInt(smallest));
    expect(BigInt(each)).toBeLessThanOrEqual(BigInt(largest));
  }
});

test("payment serials are composed as they are minted", async () => {
  const format = "101{yyyyMMddHHmmssSSS@Asia/Shanghai}{machine:2}{seq:4}";
  const flags = ["--kind", "snowflake", "--layout", "41-6-12", "--format"];
  const bad = await idmint("tag", "create", "pay", ...flags, format);
  expect([bad.exitCode, bad.err]).toEqual([2, expect.stringContaining("show the offset (xx)")]);
  const fixed = format.replace("Asia/Shanghai", "+08:00");
  await out("tag", "create", "pay", ...flags, fixed);
  const text = (await out("id", "next", "pay")).trim();
  expect(text).toMatch(/^101\d{17}00\d{4}$/);
  const { time, snowflake } = await json<Decoded>("id", "decode", "pay", text);
  const fields = ["--time", time, "--worker", "0", "--sequence", String(snowflake.sequence)];
  expect(await out("id", "encode", "pay", ...fields)).toBe(`${text}\n`);
});

test("workers are listed, and one that is released is leased anew by the server that had it", async () => {
  await out("tag", "create", "spans", "--kind", "snowflake");
  const first = BigInt((await out("id", "next", "spans")).trim());
  const listed = await json("worker", "list", "spans");
  expect(listed).toMatchObject({ workers: [{ workerId: 0, leased: true }], nextPageToken: "" });
  // The server may renew the lease between the command's two calls, and the token is another one then.
  const release = () => idmint("worker", "release", "spans", "0", "--yes", "--json");
  let answer = await release();
  if (answer.err.includes("WORKER_LEASE_LOST")) answer = await release();
  const released = JSON.parse(answer.out) as unknown;
  expect(released).toMatchObject({ tag: "spans", workerId: 0, released: true });
  // The server learns it at its next renewal; ids go on above all that were made.
  const deadline = Date.now() + 20_000;
  let again: CommandResult;
  do again = await idmint("id", "next", "spans");
  while (again.exitCode === 4 && Date.now() < deadline);
  expect([again.exitCode, again.err]).toEqual([0, ""]);
  expect(BigInt(again.out.trim())).toBeGreaterThan(first);
  await out("tag", "create", "orders");
  const { exitCode, err } = await idmint("worker", "list", "orders");
  expect([exitCode, err]).toEqual([1, expect.stringContaining("WRONG_KIND")]);
  expect((await idmint("worker", "list", "ghost")).exitCode).toBe(3);
});
