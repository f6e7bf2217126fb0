import fc from "fast-check";
import { expect, test } from "vitest";
import {
  ASK_TIMES,
  askedServers,
  type AskState,
  createAskState,
  heard,
  QUIET_MS,
  STEADY_MS,
} from "../../../src/server/claims/ask-state.ts";
import type { HeardClaimant, Hearing } from "../../../src/server/claims/ports.ts";

const TIMES = { leastMs: 3_000, mostMs: 12_000, longestMs: 55_000, pauseMs: 5_000 };

function node(id: string, renewals: number) {
  return { id, instance: id, address: `${id}:1`, renewals: BigInt(renewals) };
}

function claimant(id: string, pages: number, hasSpoken: boolean): HeardClaimant {
  return { id, instance: id, address: "", sinceMs: 5, isWhole: id < "m", pages, hasSpoken };
}

function hearing(nodes: Hearing["nodes"], claimants: readonly HeardClaimant[] = []): Hearing {
  return { isStanding: true, isEarlier: false, nodes, claimants };
}

/** Whether an accept goes on, that has looked all the time. */
function waits(state: AskState, its: Hearing, now: number): boolean {
  state.seenAt = now;
  return heard(state, its, now) === "wait";
}

test("rows that stand still are waited for as long as everybody is", () => {
  const state = createAskState(hearing([node("dead", 5)]), 0, TIMES);
  expect(waits(state, hearing([node("dead", 5)]), 2_999)).toBe(true);
  expect(waits(state, hearing([node("dead", 5)]), 3_000)).toBe(false);
});

test("a server whose row moves is waited for until it has spoken", () => {
  const state = createAskState(hearing([node("a", 5)]), 0, TIMES);
  expect(waits(state, hearing([node("a", 6)]), 4_000)).toBe(true);
  expect(waits(state, hearing([node("a", 6)], [claimant("a", 1, false)]), 5_000)).toBe(true);
  expect(waits(state, hearing([node("a", 6)], [claimant("a", 2, true)]), 5_100)).toBe(false);
});

test("a server that moves and says nothing is waited for until the time is over", () => {
  const state = createAskState(hearing([node("a", 5)]), 0, TIMES);
  expect(waits(state, hearing([node("a", 9)]), 11_999)).toBe(true);
  expect(waits(state, hearing([node("a", 9)]), 12_000)).toBe(false);
});

test("whoever still speaks is waited for while pages come, and no longer than the ask stands", () => {
  const state = createAskState(hearing([]), 0, TIMES);
  const speaking = (pages: number, now: number) =>
    waits(state, hearing([], [claimant("a", pages, false)]), now);
  expect(speaking(1, 11_000)).toBe(true);
  expect(speaking(2, 15_500)).toBe(true);
  expect(speaking(2, 20_400)).toBe(true);
  expect(speaking(2, 20_500)).toBe(false);
  expect(speaking(3, 21_000)).toBe(true);
  expect(speaking(99, 55_000)).toBe(false);
});

test("a store that does not answer says nothing of anybody", () => {
  const state = createAskState(hearing([node("a", 5)]), 0, TIMES);
  expect(waits(state, hearing([node("a", 6)]), 3_000)).toBe(true);
  expect(heard(state, undefined, 3_500)).toBe("wait");
  expect(heard(state, undefined, 11_999)).toBe("wait");
  expect(heard(state, undefined, 12_000)).toBe("anew");
});

test("whoever was out of sight, or in an earlier state, is asked anew", () => {
  const look = fc.record({
    afterMs: fc.integer({ min: 1, max: 2_000 }),
    takesMs: fc.nat(2_500),
    is: fc.constantFrom("answered", "answered", "answered", "lost", "earlier"),
  });
  fc.assert(
    fc.property(fc.array(look, { maxLength: 40 }), (looks) => {
      const state = createAskState(hearing([]), 0, TIMES);
      let now = 0;
      let seenAt = 0;
      let pausedAt = 0;
      for (const { afterMs, takesMs, is } of looks) {
        const sentAt = now + afterMs;
        now = sentAt + takesMs;
        const its = is === "lost" ? undefined : { ...hearing([]), isEarlier: is === "earlier" };
        const verdict = heard(state, its, now, sentAt);
        if (is === "earlier") expect(verdict).toBe("anew");
        // Of what was said up to then nobody knows whether something was lost that came after.
        if (now - seenAt > QUIET_MS) expect(verdict).not.toBe("done");
        if (now - seenAt > QUIET_MS && is === "answered") expect(verdict).toBe("anew");
        if (is === "lost") expect(verdict).not.toBe("done");
        if (now - seenAt > STEADY_MS && is === "answered") pausedAt = now;
        // Whoever lost something in a pause has time to find it.
        const isTime = now - pausedAt >= TIMES.leastMs || now >= TIMES.mostMs + TIMES.leastMs;
        if (!isTime) expect(verdict).not.toBe("done");
        if (verdict !== "wait") return;
        if (is === "answered") seenAt = sentAt;
      }
    }),
  );
});

test("the report has each server once, and not the row that an accept leaves", () => {
  const nodes = [node("a", 1), node("b", 1), node("before-x", 1), node("z", 1)];
  const state = createAskState(hearing(nodes), 0, TIMES);
  const moved = [node("a", 2), node("b", 2), node("before-x", 1), node("z", 1)];
  heard(state, hearing(moved), 1);
  const claimants = [claimant("a", 1, true), claimant("n", 1, true), claimant("o", 1, false)];
  const told = askedServers(state, claimants).map(({ id, told: what, sinceMs, isMoving }) => [
    id,
    what,
    sinceMs,
    isMoving,
  ]);
  expect(told).toEqual([
    ["a", "all", 5, true],
    ["b", "nothing", undefined, true],
    ["n", "since", 5, true],
    ["o", "part", undefined, true],
    ["z", "nothing", undefined, false],
  ]);
});

test("nobody who is known to run is left out before the time is over", () => {
  const server = fc.record({
    moves: fc.boolean(),
    speaksAt: fc.option(fc.nat(60_000), { nil: undefined }),
    takesMs: fc.nat(8_000),
  });
  fc.assert(
    fc.property(fc.array(server, { maxLength: 4 }), (servers) => {
      const at = (now: number) =>
        hearing(
          servers.map(({ moves }, id) => node(String(id), moves ? Math.floor(now / 1_000) : 0)),
          servers.flatMap(({ speaksAt, takesMs }, id) =>
            speaksAt === undefined || now < speaksAt
              ? []
              : [
                  claimant(
                    String(id),
                    1 + Math.floor((now - speaksAt) / 500),
                    now >= speaksAt + takesMs,
                  ),
                ],
          ),
        );
      const state = createAskState(at(0), 0, ASK_TIMES);
      let now = 250;
      let verdict = heard(state, at(now), now);
      for (; verdict === "wait"; verdict = heard(state, at(now), now)) now += 250;
      expect(verdict).toBe("done");
      expect(now).toBeGreaterThanOrEqual(ASK_TIMES.leastMs);
      expect(now).toBeLessThanOrEqual(ASK_TIMES.longestMs);
      const end = at(now);
      for (const [id, { moves, speaksAt, takesMs }] of servers.entries()) {
        const isKnown = moves || (speaksAt !== undefined && speaksAt <= now);
        const hasSpoken = end.claimants.some((one) => one.id === String(id) && one.hasSpoken);
        if (hasSpoken || !isKnown) continue;
        // It had its time, or it is slower than anybody waits for.
        expect(now).toBeGreaterThanOrEqual(ASK_TIMES.mostMs);
        const isSpeaking = speaksAt !== undefined && speaksAt <= now && now < speaksAt + takesMs;
        if (isSpeaking) expect(now).toBe(ASK_TIMES.longestMs);
      }
    }),
  );
});
