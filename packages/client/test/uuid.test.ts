import { decodeObjectId, decodeUuid, objectId, uuid } from "@idmint/client/uuid";
import { ObjectIdMaker, UuidMaker } from "@idmint/core";
import { ObjectId } from "bson";
import * as library from "uuid";
import { expect, test } from "vitest";

const MADE = 10_000;
const now = 1_795_246_245_123;
const random = (count: number) => new Uint8Array(count).fill(0x5a);

test.each([
  ["v1", 1],
  ["v4", 4],
  ["v6", 6],
  ["v7", 7],
] as const)("%s: UUIDs that the library takes for its own, each once", (name, version) => {
  const made = Array.from({ length: MADE }, () => uuid[name]());
  expect(new Set(made).size).toBe(MADE);
  for (const text of made) {
    expect(library.validate(text)).toBe(true);
    expect(library.version(text)).toBe(version);
  }
});

test.each(["v6", "v7"] as const)("%s increases within the process", (name) => {
  const made = Array.from({ length: MADE }, () => uuid[name]());
  expect(made.toSorted()).toEqual(made);
});

test("times of versions 1, 6 and 7 are those of now", () => {
  for (const text of [uuid.v1(), uuid.v6(), uuid.v7()]) {
    const { timeMs = 0 } = decodeUuid(text) ?? {};
    expect(Math.abs(Date.now() - timeMs)).toBeLessThan(5_000);
  }
});

test("version 2 is made of a number and a domain, each once however many there are", () => {
  const made = Array.from({ length: 1_000 }, () => uuid.v2("GROUP", 20));
  expect(new Set(made).size).toBe(1_000);
  for (const text of made) {
    expect(library.validate(text)).toBe(true);
    expect(text).toMatch(/^00000014-.{4}-2.{3}-..01-/);
  }
});

test("nodes are random: the multicast bit is set, which no network card's address has", () => {
  for (const text of [uuid.v1(), uuid.v2("PERSON", 0), uuid.v6()])
    expect(Number.parseInt(text.slice(-12, -10), 16) & 1).toBe(1);
});

// RFC 9562, appendix A.2 and A.4.
test("names within a namespace", () => {
  expect(uuid.v3("www.example.com", "DNS")).toBe("5df41881-3aed-3515-88a7-2f4a814cf09e");
  expect(uuid.v5("www.example.com", "DNS")).toBe("2ed6657d-e927-568b-95e1-2665a8aea6a2");
  expect(uuid.v5("购物", "URL")).toBe(library.v5("购物", library.v5.URL));
});

// RFC 9562, appendix A.1 and A.5: one moment, one clock sequence, one node.
test("the library's versions 1 and 6 are those of the RFC", () => {
  const options = {
    msecs: 1_645_557_742_000,
    nsecs: 0,
    clockseq: 0x33c8,
    node: Uint8Array.of(0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46),
  };
  expect(library.v1(options)).toBe("c232ab00-9414-11ec-b3c8-9f6bdeced846");
  expect(library.v6(options)).toBe("1ec9414c-232a-6b00-b3c8-9f6bdeced846");
});

test("version 6 increases and version 1 is never made twice when the clock goes back", () => {
  let ms = now;
  const maker = new UuidMaker(library, { random, now: () => (ms -= 7) });
  const sixes = Array.from({ length: MADE + 5 }, () => maker.v6());
  expect(sixes.toSorted()).toEqual(sixes);
  const ones = Array.from({ length: 1_000 }, () => maker.v1());
  expect(new Set(ones).size).toBe(1_000);
});

test("ObjectIds are those of bson, and increase", () => {
  const made = Array.from({ length: MADE }, () => objectId());
  expect(made.toSorted()).toEqual(made);
  expect(new Set(made).size).toBe(MADE);
  const [first = ""] = made;
  expect(ObjectId.isValid(first)).toBe(true);
  expect(new ObjectId(first).toHexString()).toBe(first);
  expect(new ObjectId(first).getTimestamp().getTime()).toBe(decodeObjectId(first));
  expect(Math.abs(Date.now() - (decodeObjectId(first) ?? 0))).toBeLessThan(5_000);
});

test("ObjectIds of machine and process have both in the middle", () => {
  const pid = (process.pid & 0xffff).toString(16).padStart(4, "0");
  const [a, b] = [objectId("MACHINE_PROCESS"), objectId("MACHINE_PROCESS")];
  expect(a.slice(8, 18)).toBe(b.slice(8, 18));
  expect(a.slice(14, 18)).toBe(pid);
  expect(a < b).toBe(true);
  const ports = { random, now: () => now };
  const maker = new ObjectIdMaker(ports, Uint8Array.of(1, 2, 3), 0x1_2345);
  expect(new ObjectId(maker.next("MACHINE_PROCESS")).toHexString().slice(8, 18)).toBe("0102032345");
});
