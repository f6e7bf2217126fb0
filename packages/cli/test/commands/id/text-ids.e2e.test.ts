import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { devServer } from "../../dev-server.ts";

const { idmint, out } = devServer((folder) => {
  const key = path.join(folder, "key-1");
  writeFileSync(key, "5a".repeat(16));
  chmodSync(key, 0o400);
  return { IDMINT_UNGUESSABLE_KEYS: `1=${key}` };
});

test("ids with a format are printed, many at a time, and taken apart", async () => {
  const format = "INV{id:8}{luhn}";
  const made = await out("tag", "create", "invoices", "--ceiling", "99999999", "--format", format);
  expect(made).toMatch(/^format +INV\{id:8\}\{luhn\}$/m);
  expect(await out("id", "next", "invoices")).toBe("INV000000018\n");
  expect(await out("id", "next", "invoices", "-n", "2")).toBe("INV000000026\nINV000000034\n");
  const json = await out("id", "next", "invoices", "-n", "2", "--json");
  expect(JSON.parse(json)).toEqual({ tag: "invoices", texts: ["INV000000042", "INV000000059"] });
  expect(await out("id", "decode", "invoices", "INV000000042")).toBe(
    "number  4\ntext    INV\nid      00000004\nluhn    2\n",
  );
  const { exitCode, err } = await idmint("id", "decode", "invoices", "INV000000043");
  expect(exitCode).not.toBe(0);
  expect(err).toContain("at position 12: the check digit does not fit the text before it");
});

test("unguessable ids are printed, more than a call makes, and taken apart", async () => {
  const made = await out(
    "tag",
    "create",
    "codes",
    "--ceiling",
    "99999999",
    "--key-id",
    "1",
    "--json",
  );
  expect(JSON.parse(made)).toMatchObject({ tag: { unguessable: { keyId: 1, keyDigits: 1 } } });
  const ids = (await out("id", "next", "codes", "-n", "2500")).trim().split("\n");
  expect(new Set(ids).size).toBe(2_500);
  expect(ids.every((id) => /^1\d{8}$/.test(id))).toBe(true);
  const decoded = JSON.parse(await out("id", "decode", "codes", ids[2_499]!, "--json")) as object;
  expect(decoded).toMatchObject({ id: "2500", keyId: 1 });
  const { err } = await idmint("tag", "update", "codes", "--key-id", "2");
  expect(err).toContain("KEY_UNKNOWN");
});

test("UUIDs and ObjectIds", async () => {
  await out("tag", "create", "sessions", "--kind", "uuid", "--version", "7");
  const [first = "", second = ""] = (await out("id", "next", "sessions", "-n", "2")).split("\n");
  expect(first < second).toBe(true);
  expect(await out("id", "decode", "sessions", first)).toMatch(/^uuid version +7\ntime +20/);
  const flags = "--kind uuid --version 5 --namespace DNS".split(" ");
  expect(await out("tag", "create", "named", ...flags)).toMatch(/^namespace +6ba7b810-/m);
  expect(await out("id", "next", "named", "--name", "www.example.com")).toBe(
    "2ed6657d-e927-568b-95e1-2665a8aea6a2\n",
  );
  const classic = await out("tag", "create", "docs", "--kind", "object-id");
  expect(classic).toMatch(/^variant +classic$/m);
  expect(await out("id", "next", "docs")).toMatch(/^[0-9a-f]{24}\n$/);
});
