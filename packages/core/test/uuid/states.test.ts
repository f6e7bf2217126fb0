import { decodeObjectId, decodeUuid, ObjectIdMaker, UuidMaker } from "@idmint/core";
import type { UuidLibrary } from "../../src/uuid/makers.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createDceState, nextDceUuid } from "../../src/uuid/dce-state.ts";
import { createGregorianState, nextGregorian } from "../../src/uuid/gregorian-state.ts";
import { createObjectIdState, nextObjectId } from "../../src/uuid/object-id-state.ts";
import { hexOf, uuidText } from "../../src/uuid/text.ts";

/** Random bytes that never come twice: a counter. */
function counter(): (count: number) => Uint8Array {
  let value = 0;
  return (count) => {
    value += 1;
    const bytes = new Uint8Array(count);
    new DataView(bytes.buffer).setUint16(Math.max(0, count - 2), value % 2 ** 16);
    return bytes;
  };
}

/** The highest place that the counter of a second can begin at. */
const highest = () => Uint8Array.of(255, 255, 255);

/** Clocks that stand, run, jump and go back. */
const clock = fc
  .array(fc.oneof(fc.constant(0), fc.integer({ min: -900_000, max: 900_000 })), { maxLength: 400 })
  .map((steps) => {
    let ms = 1_800_000_000_000;
    return steps.map((step) => (ms += step));
  });

test("version 2: fields, and a random node with the multicast bit", () => {
  const state = createDceState(() => Uint8Array.of(0xa0, 2, 3, 4, 5, 6));
  const ms = Date.UTC(2026, 10, 21);
  const text = uuidText(nextDceUuid(state, "GROUP", 0xdead_beef, ms, counter()));
  expect(text).toMatch(/^deadbeef-[0-9a-f]{4}-2[0-9a-f]{3}-8001-a10203040506$/);
  const { version, timeMs = 0 } = decodeUuid(text) ?? {};
  expect(version).toBe(2);
  expect(ms - timeMs).toBeGreaterThanOrEqual(0);
  expect(ms - timeMs).toBeLessThan(429_497);
});

test("version 2 never repeats, whatever the clock does and however many are made", () => {
  fc.assert(
    fc.property(clock, (times) => {
      const random = counter();
      const state = createDceState(random);
      const made = times.flatMap((ms) =>
        [1, 2, 3].map(() => uuidText(nextDceUuid(state, "PERSON", 501, ms, random))),
      );
      expect(new Set(made).size).toBe(made.length);
    }),
  );
  const random = counter();
  const state = createDceState(random);
  const many = Array.from({ length: 1_000 }, () =>
    uuidText(nextDceUuid(state, "PERSON", 501, 1_800_000_000_000, random)),
  );
  expect(new Set(many).size).toBe(1_000);
});

test("times of versions 1 and 6 strictly increase, whatever the clock does", () => {
  fc.assert(
    fc.property(clock, (times) => {
      const state = createGregorianState();
      let last = -1n;
      for (const ms of times) {
        nextGregorian(state, ms);
        expect(state.steps).toBeLessThan(10_000);
        const now = BigInt(state.ms) * 10_000n + BigInt(state.steps);
        expect(now > last).toBe(true);
        last = now;
      }
    }),
  );
  const state = createGregorianState();
  for (let made = 0; made < 10_001; made++) nextGregorian(state, 5);
  expect(state).toEqual({ ms: 6, steps: 0 });
});

test("ObjectIds strictly increase, whatever the clock does and when the counter is used up", () => {
  fc.assert(
    fc.property(clock, (times) => {
      const state = createObjectIdState(Uint8Array.of(1, 2, 3, 4, 5));
      let last = "";
      for (const ms of times) {
        const text = hexOf(nextObjectId(state, ms, highest));
        expect(text > last).toBe(true);
        last = text;
      }
    }),
  );
  const state = createObjectIdState(Uint8Array.of(1, 2, 3, 4, 5));
  state.second = 7;
  state.counter = 2 ** 24 - 2;
  const texts = [7_000, 7_999, 6_000].map((ms) => hexOf(nextObjectId(state, ms, counter())));
  expect(texts).toEqual([
    "000000070102030405ffffff",
    "000000080102030405000001",
    "000000080102030405000002",
  ]);
});

test("seconds past 32 bits are refused, never wrapped", () => {
  const state = createObjectIdState(Uint8Array.of(1, 2, 3, 4, 5));
  const last = (2 ** 32 - 1) * 1_000;
  expect(hexOf(nextObjectId(state, last + 999, counter()))).toMatch(/^ffffffff0102030405/);
  expect(() => nextObjectId(state, last + 1_000, counter())).toThrow("TIMESTAMP_EXHAUSTED");
});

const library: UuidLibrary = {
  v1: ({ node }) => `v1 ${hexOf(node)}`,
  v3: (name, namespace) => `v3 ${name} ${namespace}`,
  v4: () => "v4",
  v5: (name, namespace) => `v5 ${name} ${namespace}`,
  v6: ({ node }) => `v6 ${hexOf(node)}`,
  v7: () => "v7",
};

test("a tag's version decides, and nodes have the multicast bit", () => {
  const maker = new UuidMaker(library, { random: (count) => new Uint8Array(count), now: () => 0 });
  const namespace = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8";
  const kind = "uuid" as const;
  expect(maker.next({ kind, version: 1 })).toBe("v1 010000000000");
  expect(maker.next({ kind, version: 6 })).toBe("v6 010000000000");
  expect(maker.next({ kind, version: 3, namespace }, "a")).toBe(
    "v3 a 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  );
  expect(maker.next({ kind, version: 5, namespace }, "a")).toBe(
    "v5 a 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  );
  expect(maker.next({ kind, version: 4 })).toBe("v4");
  expect(maker.next({ kind, version: 7 })).toBe("v7");
  expect(maker.next({ kind, version: 2, domain: "ORG", number: 9 })).toMatch(
    /^00000009-.{4}-2.{3}-8002-010000000000$/,
  );
  expect(() => maker.v2("PERSON", 2 ** 32)).toThrow("number must be an integer, 0 to 4294967295");
  expect(() => maker.v2("PERSON", -1)).toThrow("INVALID_ARGUMENT");
  for (const domain of ["X", "person", "constructor", undefined]) {
    const made = (): string => maker.v2(domain as "PERSON", 1);
    expect(made).toThrow("domain must be one of PERSON, GROUP, ORG, got");
  }
  expect(maker.v5("a", "DNS")).toBe("v5 a 6ba7b810-9dad-11d1-80b4-00c04fd430c8");
  expect(maker.v5("", "00000000-0000-0000-0000-000000000000")).toBe(
    "v5  00000000-0000-0000-0000-000000000000",
  );
  expect(() => maker.v3("a", "dns")).toThrow("namespace must be a UUID, or one of DNS");
  expect(() => maker.v3("\uD800", "DNS")).toThrow("name must be text without lone surrogates");
});

test("both variants of ObjectIds", () => {
  const ports = { random: (count: number) => new Uint8Array(count).fill(7), now: () => 1_000 };
  const maker = new ObjectIdMaker(ports, Uint8Array.of(0xaa, 0xbb, 0xcc, 0xdd), 70_000);
  expect(maker.next("CLASSIC")).toBe("000000010707070707070707");
  expect(maker.next("MACHINE_PROCESS")).toBe("00000001aabbcc1170070707");
  expect(maker.next("MACHINE_PROCESS")).toBe("00000001aabbcc1170070708");
});

// RFC 9562, appendix A: one moment in three versions.
test.each([
  ["C232AB00-9414-11EC-B3C8-9F6BDECED846", 1, 1_645_557_742_000],
  ["1EC9414C-232A-6B00-B3C8-9F6BDECED846", 6, 1_645_557_742_000],
  ["017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7, 1_645_557_742_000],
  ["919108f7-52d1-4320-9bac-f847db4148a8", 4, undefined],
  ["5df41881-3aed-3515-88a7-2f4a814cf09e", 3, undefined],
  ["2ed6657d-e927-568b-95e1-2665a8aea6a2", 5, undefined],
])("%s is of version %i", (text, version, timeMs) => {
  // RFC 9562: either case is read.
  for (const each of [text, text.toLowerCase(), text.toUpperCase()]) {
    expect(decodeUuid(each)).toEqual({ version, timeMs });
  }
});

test.each(["", "G232AB00-9414-11EC-B3C8-9F6BDECED846", "c232ab00941411ecb3c89f6bdeced846", "x"])(
  "%j is no UUID of ours",
  (text) => {
    expect(decodeUuid(text)).toBeUndefined();
    expect(decodeObjectId(text)).toBeUndefined();
  },
);

test.each([null, undefined, 7, 7n, {}, ["c232ab00-9414-11ec-b3c8-9f6bdeced846"]])(
  "what is no text is refused with the field: case %#",
  (given) => {
    for (const decode of [decodeUuid, decodeObjectId]) {
      expect(() => void Reflect.apply(decode, undefined, [given])).toThrow(
        /^INVALID_ARGUMENT: text must be text: an? \w+ as it is/,
      );
    }
  },
);

test("a time within a millisecond is told as that millisecond, never as the next one", () => {
  // 9,999 steps of 100 nanoseconds after the moment of the RFC.
  for (const text of [
    "c232d20f-9414-11ec-b3c8-9f6bdeced846",
    "1ec9414c-232a-6b00-b3c8-9f6bdeced846".replace("232a-6b00", "232d-620f"),
  ]) {
    expect(decodeUuid(text)?.timeMs).toBe(1_645_557_742_000);
  }
});

test("a second's counter begins where 2^23 ids fit that second, whatever the random bytes are", () => {
  const state = createObjectIdState(new Uint8Array(5));
  for (const nowMs of [5_000, 6_000, 7_000]) {
    nextObjectId(state, nowMs, highest);
    expect(state.counter).toBe(2 ** 23 - 1);
    // So many more, and still none ahead of the clock.
    state.counter += 2 ** 23 - 1;
    nextObjectId(state, nowMs, highest);
    expect([state.second * 1_000, state.counter]).toEqual([nowMs, 2 ** 24 - 1]);
  }
});

test("an ObjectId says its second", () => {
  expect(decodeObjectId("507f1f77bcf86cd799439011")).toBe(1_350_508_407_000);
  expect(decodeObjectId("507F1F77BCF86CD799439011")).toBe(1_350_508_407_000);
});
