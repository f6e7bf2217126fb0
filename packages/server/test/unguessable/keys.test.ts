import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { unguessableIds } from "@idmint/client/unguessable";
import { IdmintError, UnguessableIds } from "@idmint/core";
import { expect, onTestFinished, test } from "vitest";
import { readKeys } from "../../src/unguessable/keys.ts";

const SECRET = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

function fileWith(content: string, mode = 0o400): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-keys-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "key");
  writeFileSync(file, content);
  chmodSync(file, mode);
  return file;
}

const check = (secret: string) => readKeys(new Map([[1, fileWith(secret)]])).get(1)?.check ?? "";

function refusal(files: [number, string][]): IdmintError {
  try {
    readKeys(new Map(files));
  } catch (error) {
    if (error instanceof IdmintError) return error;
    throw error;
  }
  throw new Error("the keys were read");
}

test("keys make the ids that the SDK's helper makes, whatever their size", () => {
  for (const digits of [32, 48, 64]) {
    const secret = SECRET.slice(0, digits);
    const key = readKeys(new Map([[7, fileWith(`${secret}\n`)]])).get(7)!;
    const ceiling = 10_000_000n;
    const ours = new UnguessableIds({ ceiling, keyDigits: 1 }, [[7, key.permutationOf("orders")]]);
    const keys = { 7: Buffer.from(secret, "hex") };
    const theirs = unguessableIds({ tag: "orders", ceiling, keys });
    for (const number of [1n, 2n, 9_999_999n, ceiling])
      expect(ours.hide(number, 7)).toBe(theirs.hide(number, 7));
  }
});

test("a check tells keys apart, is always the same, and is not made of the key's digits", () => {
  expect(check(SECRET)).toBe(check(`${SECRET.toUpperCase()}\r\n`));
  expect(check(SECRET)).not.toBe(check(SECRET.slice(0, 32)));
  expect(check(SECRET)).toMatch(/^[0-9a-f]{16}$/);
  expect(SECRET).not.toContain(check(SECRET).slice(0, 8));
});

test.each([
  ["others may read it", SECRET, 0o404],
  ["the group may change it", SECRET, 0o460],
  ["others may change it", SECRET, 0o402],
])("a file is refused when %s", (_, content, mode) => {
  const octal = mode.toString(8);
  expect(refusal([[3, fileWith(content, mode)]]).violations).toEqual([
    {
      field: "unguessable.keys",
      description: `3 names a file of mode 0${octal}: others can read or change it; chmod 0400`,
    },
  ]);
});

test("a group may read it, as secrets are mounted", () => {
  expect(readKeys(new Map([[1, fileWith(SECRET, 0o440)]])).size).toBe(1);
});

test.each([
  ["nothing", ""],
  ["another length", SECRET.slice(2)],
  ["no digits", `${SECRET.slice(0, 62)}xy`],
  ["two lines", `${SECRET}\n${SECRET}\n`],
  ["much", SECRET.repeat(20)],
])("a file that holds %s is refused, and not shown", (_, content) => {
  const error = refusal([[2, fileWith(content)]]);
  expect(error.violations).toHaveLength(1);
  expect(error.violations[0]?.description).toMatch(/^2 names a file that is /);
  if (content !== "") expect(String(error.stack)).not.toContain(content.slice(0, 16));
});

test("all files are looked at, and one key under two numbers is a mistake", () => {
  const error = refusal([
    [1, fileWith(SECRET)],
    [2, path.join(tmpdir(), "idmint-there-is-no-such-file")],
    [3, fileWith(SECRET)],
  ]);
  expect(error.violations.map(({ description }) => description)).toEqual([
    "2 names a file that cannot be read (ENOENT)",
    "3 is the same key as 1",
  ]);
});
