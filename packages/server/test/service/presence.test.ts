// Who may issue, of a store in several databases: whoever is heard in each that a tag may be in.
import type { StorePart } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { Presence } from "../../src/service/presence.ts";
import { MergedChanges } from "../../src/store/spread/merged-changes.ts";
import { Locator } from "../../src/store/spread/locator.ts";

const MAX_OFFLINE_MS = 10_000;

function presenceOn(time: FakeTime): Presence {
  const node = { id: "own", instance: "own", version: "", zone: "", startedAtMs: 0 };
  return new Presence({
    node: { ...node, maxOfflineMs: MAX_OFFLINE_MS },
    firstCount: 0n,
    proofPatienceMs: 0,
    partsOf: (tag) => (tag === "leaving" ? ["a", "b"] : ["a"]),
    clock: time,
    emit: () => undefined,
  });
}

function part(name: string): StorePart {
  const issuing = { isStopped: false, revision: 0n, stoppedAtMs: undefined };
  const rest = { nodes: undefined, traffic: [], issuing } as const;
  return { name, incarnation: `i-${name}`, revision: 1n, isRenewed: true, ...rest };
}

test("every database that a tag may be in has to be heard, the last one too", () => {
  const time = new FakeTime();
  const presence = presenceOn(time);
  // Twice: the first renewal makes the row, and only what follows is obeyed.
  const hear = (name: string): void => {
    for (let poll = 0; poll < 2; poll++) {
      presence.obeyed(presence.acknowledged([part(name)], time.now()));
    }
  };
  expect(presence.refusalOf("leaving")?.message).toContain("no row in database a");
  hear("a");
  expect(presence.refusalOf("at home")).toBeUndefined();
  expect(presence.refusalOf("leaving")?.message).toContain("no row in database b");
  hear("b");
  expect(presence.refusalOf("leaving")).toBeUndefined();
  time.advance(MAX_OFFLINE_MS - 1);
  hear("a");
  time.advance(1);
  expect(presence.refusalOf("at home")).toBeUndefined();
  expect(presence.refusalOf("leaving")?.message).toContain("cut off from database b");
  expect(presence.silentParts).toEqual(["b"]);
});

test("a poll of several databases tells of each of them, under its own name", async () => {
  const locator = new Locator(["a", "b"], async () => []);
  const changes = new MergedChanges(["a", "b"], locator, async (member) => ({
    incarnation: `i-${member}`,
    revision: 1n,
    changed: [],
    more: false,
    behind: [],
    fenced: "",
    nowMs: 0,
    parts: [part("")],
    departed: [],
    standbys: "",
    standbyNames: "",
  }));
  const { parts } = await changes.changes({ since: 0n, watched: [], limit: 10 });
  expect(parts.map(({ name, isRenewed }) => [name, isRenewed])).toEqual([
    ["a", true],
    ["b", true],
  ]);
});
