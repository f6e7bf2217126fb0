// The file of what a server was granted: what the next life reads of it, and what nobody may believe.
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { IdmintError } from "@idmint/core";
import { expect, onTestFinished, test } from "vitest";
import { openGrantFile, type OpenGrantFile } from "../../../src/store/kept/grant-file.ts";

const ORIGIN = { boot: "boot-1", lock: "lock-1" };

function scene() {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-grants-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const name = path.join(folder, "leases.grants");
  const failures: IdmintError[] = [];
  const onFailed = (error: IdmintError): void => void failures.push(error);
  const open = (origin = ORIGIN, at = name): OpenGrantFile => {
    const file = openGrantFile(at, { origin, offsetMs: 5, onFailed });
    onTestFinished(() => file.close());
    return file;
  };
  return { folder, name, failures, open };
}

test("what was appended is found, also the half of a last line", () => {
  const { name, open } = scene();
  const file = open();
  expect(file.found).toBeUndefined();
  file.replace("one\n");
  file.append("two\n");
  file.append("three\n");
  expect(file.size).toBe(statSync(name).size);
  truncateSync(name, statSync(name).size - 2);
  expect(open().found).toBe("one\ntwo\nthre");
  file.replace("four\n");
  expect(open().found).toBe("four\n");
});

test("a copy, another run of the machine, another lock, and a file that was put back say nothing", () => {
  const { name, folder, open } = scene();
  open().replace("one\n");
  expect(open({ ...ORIGIN, boot: "boot-2" }).found).toBeUndefined();
  expect(open({ ...ORIGIN, lock: "lock-2" }).found).toBeUndefined();
  const copy = path.join(folder, "copy");
  copyFileSync(name, copy);
  expect(open(ORIGIN, copy).found).toBeUndefined();
  const linked = path.join(folder, "linked");
  linkSync(name, linked);
  const later = open();
  expect(later.found).toBe("one\n");
  later.replace("two\n");
  // An older one that was kept by another name is empty.
  expect(readFileSync(linked, "utf8")).toBe("");
  rmSync(name);
  copyFileSync(copy, name);
  expect(open().found).toBeUndefined();
  writeFileSync(name, "nonsense");
  expect(open().found).toBeUndefined();
});

test("a file that cannot be written says nothing until it is written anew, which is told once", () => {
  const { name, failures, open } = scene();
  const file = open();
  file.replace("one\n");
  mkdirSync(`${name}.next`);
  file.replace("two\n");
  file.replace("two\n");
  file.append("three\n");
  expect(failures.map(({ reason }) => reason)).toEqual(["STORE_UNAVAILABLE"]);
  expect(failures[0]?.message).toContain("will know nothing of its grants");
  expect([file.isEmpty, statSync(name).size]).toEqual([true, 0]);
  expect(open().found).toBeUndefined();
  rmdirSync(`${name}.next`);
  file.replace("four\n");
  expect([file.isEmpty, open().found]).toEqual([false, "four\n"]);
});

test("nothing is said to be kept after it was closed", () => {
  const { open } = scene();
  const file = open();
  file.replace("one\n");
  file.close();
  expect(() => file.append("two\n")).toThrow("neither written nor emptied");
});
