// Who may issue, of a store in several databases: whoever is heard in each that a tag may be in.
import type { StorePart } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { nodeOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { noRecord } from "./no-record.ts";
import { Presence } from "../../src/service/presence.ts";
import { MergedChanges } from "../../src/store/spread/merged-changes.ts";
import { Locator } from "../../src/store/spread/locator.ts";

const MAX_OFFLINE_MS = 10_000;

function presenceOn(
  time: FakeTime,
  proofPatienceMs = 0,
  earlier?: ConstructorParameters<typeof Presence>[1],
  issuesUnproved = false,
): Presence {
  const node = { id: "own", instance: "own", version: "", zone: "", startedAtMs: 0 };
  const its = {
    node: { ...node, maxOfflineMs: MAX_OFFLINE_MS },
    firstCount: 0n,
    proofPatienceMs,
    issuesUnproved,
    record: noRecord(),
    partsOf: (tag: string) => (tag === "leaving" ? ["a", "b"] : ["a"]),
    clock: time,
    emit: () => undefined,
  };
  return new Presence(its, earlier);
}

function part(name: string, nodes?: StorePart["nodes"]): StorePart {
  const issuing = { isStopped: false, revision: 0n, stoppedAtMs: undefined };
  const rest = { nodes, traffic: [], issuing } as const;
  return { name, incarnation: `i-${name}`, revision: 1n, isRenewed: true, ...rest };
}

/** A poll that shows the row of another server, which was proved. */
function hearOther(presence: Presence, renewals: bigint, time: FakeTime): void {
  const other = { ...nodeOf("other"), renewals, incarnation: "i-a", obeyed: 1n, traffic: 0n };
  const nodes = [{ ...other, isProved: true }];
  presence.obeyed(presence.acknowledged([part("a", nodes)], time.now()));
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

test("a server that goes on for an earlier life issues until the store answers, and then what is proved", () => {
  const time = new FakeTime();
  const until = time.now() + MAX_OFFLINE_MS;
  const presence = presenceOn(time, 1_000, { id: "own", parts: [["a", until]] });
  expect(presence.refusalOf("at home")).toBeUndefined();
  const hear = (renewals: bigint): void => hearOther(presence, renewals, time);
  // The store may have been put back while this server did not run: the other one knows.
  hear(5n);
  expect(presence.refusalOf("at home")?.message).toContain("waits until a server that knows");
  expect(presence.until.parts).toEqual([["a", until]]);
  hear(6n);
  expect(presence.refusalOf("at home")).toBeUndefined();
});

test("a server that issues without a proof vouches for nothing before it has one", () => {
  const time = new FakeTime();
  const presence = presenceOn(time, 1_000, undefined, true);
  const vouches = (): boolean =>
    presence.renewal({ incarnation: "i-a", revision: 1n }, 0n).isProved;
  hearOther(presence, 5n, time);
  hearOther(presence, 5n, time);
  expect([presence.refusalOf("at home"), presence.isUnproved]).toEqual([undefined, false]);
  expect([vouches(), presence.wantsNodes]).toEqual([false, true]);
  hearOther(presence, 6n, time);
  expect([vouches(), presence.wantsNodes]).toEqual([true, false]);
});
