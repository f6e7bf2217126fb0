import type { AuditEvent } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  CALLER_ROWS,
  countOf,
  createRefusalsState,
  MAX_CALLERS,
  MAX_WAITING,
  minuteOver,
  putBack,
  ROWS_A_MINUTE,
  sawRefusal,
  takeWaiting,
} from "../../../src/service/audit/refusals-state.ts";

const eventOf = (peer: string): AuditEvent => ({
  id: "e",
  principal: "",
  proof: "",
  peer,
  method: "/m",
  server: "s",
  kind: "refusal",
  atMs: 0,
  resource: "tag/t",
  outcome: "UNAUTHENTICATED",
  before: "",
  after: "",
  omitted: 0,
});

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("refused" as const),
      // Few who make many, and many who make one each.
      caller: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 10_000 })),
      times: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 300 })),
      isFlood: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("pass" as const),
      ms: fc.integer({ min: 1, max: 70_000 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("write" as const),
      most: fc.integer({ min: 1, max: 100 }),
      fails: fc.boolean(),
    }),
  },
);

test("however many are refused, all are counted, few have rows, and few wait", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: "max" }), (steps) => {
      let now = 0;
      let refused = 0;
      let written = 0;
      const state = createRefusalsState(now);
      for (const next of steps) {
        if (next.do === "pass") now += next.ms;
        else if (next.do === "write") {
          const taken = takeWaiting(state, next.most);
          if (next.fails) putBack(state, taken);
          else for (const event of taken) written += countOf(event);
        } else {
          for (let at = 0; at < next.times; at++) {
            const caller = next.isFlood ? `${next.caller + at}` : `${next.caller}`;
            sawRefusal(state, caller, eventOf(caller), now);
            refused++;
          }
        }
        expect(state.waiting.length).toBeLessThanOrEqual(MAX_WAITING);
        expect(state.callers.size).toBeLessThanOrEqual(MAX_CALLERS);
      }
      minuteOver(state, Infinity);
      for (const event of state.waiting) written += countOf(event);
      expect(written).toBe(refused);
    }),
  );
});

test("a caller gets few rows a minute, all together not many, and a row for the rest", () => {
  const state = createRefusalsState(0);
  for (let at = 0; at < 1_000; at++) sawRefusal(state, "loud", eventOf("loud"), 1);
  expect(state.waiting).toHaveLength(CALLER_ROWS);
  sawRefusal(state, "quiet", eventOf("quiet"), 2);
  expect(takeWaiting(state, 100).at(-1)?.peer).toBe("quiet");
  minuteOver(state, 60_000);
  expect(takeWaiting(state, 100)).toMatchObject([{ peer: "loud", omitted: 990 }]);
  for (let at = 0; at < 500; at++) sawRefusal(state, `${at}`, eventOf(`${at}`), 60_001);
  expect(takeWaiting(state, 500)).toHaveLength(ROWS_A_MINUTE);
  minuteOver(state, 120_001);
  // Whoever is beyond the callers that are told apart is one of many.
  expect(takeWaiting(state, 500)).toMatchObject([{ peer: "several callers", omitted: 400 }]);
});
