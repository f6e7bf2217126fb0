import fc from "fast-check";
import { expect, test } from "vitest";
import type { Signal } from "../../src/signal/api.ts";
import { SeenCount } from "../../src/signal/count-state.ts";
import { SeenIds } from "../../src/signal/dedupe-state.ts";
import { Inbox } from "../../src/signal/inbox-state.ts";

test("an id is new exactly when it is not among the newest that are remembered", () => {
  const ids = fc.array(fc.integer({ min: 0, max: 12 }).map(String), { maxLength: 200 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), ids, (limit, all) => {
      const seen = new SeenIds(limit);
      let remembered: string[] = [];
      for (const id of all) {
        const isNew = !remembered.includes(id);
        if (isNew) remembered = [...remembered, id].slice(-limit);
        expect(seen.isNew(id)).toBe(isNew);
      }
    }),
  );
});

test("of two sources in order each signal is new once, as long as neither is a window behind", () => {
  const lag = fc.integer({ min: 0, max: 10 });
  fc.assert(
    fc.property(fc.array(lag, { minLength: 1, maxLength: 200 }), (lags) => {
      const seen = new SeenIds(11);
      const fresh: number[] = [];
      let behind = 0;
      for (const [at, most] of lags.entries()) {
        if (seen.isNew(String(at))) fresh.push(at);
        while (at - behind >= most && behind <= at) {
          if (seen.isNew(String(behind))) fresh.push(behind);
          behind++;
        }
      }
      expect(fresh).toEqual(lags.map((_, at) => at));
    }),
  );
});

const names = ["a", "b", "c"] as const;
type Step = { readonly add: Signal } | { readonly miss: string } | "take";
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(...names).map((name) => ({ add: { name, data: "", id: "" } })),
  },
  { weight: 1, arbitrary: fc.constantFrom(...names).map((name) => ({ miss: name })) },
  { weight: 3, arbitrary: fc.constant("take" as const) },
);

test("a line answers every signal once and in order, or says whose were missed", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { maxLength: 60 }),
      (limit, steps) => {
        const inbox = new Inbox(limit);
        let line: Signal[] = [];
        let missed = new Set<string>();
        let next = 0;
        for (const each of steps) {
          if (each === "take") {
            if (missed.size > 0) {
              expect(inbox.take()).toEqual({ signals: [], missed: [...missed] });
              missed = new Set();
            } else {
              const first = line.shift();
              expect(inbox.take()).toEqual(first && { signals: [first], missed: [] });
            }
          } else if ("miss" in each) {
            inbox.miss(each.miss);
            missed.add(each.miss);
          } else {
            const signal = { ...each.add, id: String(next++) };
            inbox.add(signal);
            line = [...line, signal];
            if (line.length > limit) missed.add(line.shift()!.name);
          }
        }
      },
    ),
  );
});

test("a collector of all answers the newest of each name, once all are there or one was missed", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const inbox = new Inbox(1, names);
      let newest = new Map<string, Signal>();
      let missed = new Set<string>();
      let next = 0;
      for (const each of steps) {
        if (each === "take") {
          const isDue = missed.size > 0 || newest.size === names.length;
          const signals = names.flatMap((name) => newest.get(name) ?? []);
          expect(inbox.take()).toEqual(isDue ? { signals, missed: [...missed] } : undefined);
          if (!isDue) continue;
          newest = new Map();
          missed = new Set();
        } else if ("miss" in each) {
          inbox.miss(each.miss);
          missed.add(each.miss);
        } else {
          const signal = { ...each.add, id: String(next++) };
          inbox.add(signal);
          newest.set(signal.name, signal);
        }
      }
    }),
  );
});

test("a listener of one source knows of every gap, and of none that is not there", () => {
  // Broadcasts, breaks and returns of one connection; an answer about the count may come before or after those it counts.
  const events = fc.array(fc.constantFrom("send", "break", "return", "answer"), { maxLength: 80 });
  fc.assert(
    fc.property(events, fc.array(fc.integer({ min: 1, max: 50 })), (all, jumps) => {
      const seen = new SeenCount();
      let count = 0;
      let sent = 0;
      let isUp = true;
      let answers: number[] = [];
      let hasMissed = false;
      seen.began(0, 0);
      for (const event of all) {
        if (event === "send") {
          const previous = count;
          count += jumps[sent++ % Math.max(1, jumps.length)] ?? 1;
          if (!isUp) hasMissed = true;
          // Another broadcast tells of the gap before the answer does.
          else if (seen.heard(0, { count, previous })) {
            expect(hasMissed).toBe(true);
            hasMissed = false;
          }
        } else if (event === "break") {
          isUp = false;
          answers = [];
          seen.ended(0);
        } else if (event === "return" && !isUp) {
          isUp = true;
          answers = [count];
        } else {
          for (const answer of answers) {
            const isTold = seen.began(0, answer);
            expect(isTold).toBe(hasMissed);
            hasMissed = false;
          }
          answers = [];
        }
      }
      for (const answer of answers) expect(seen.began(0, answer)).toBe(hasMissed);
    }),
  );
});

test("a Redis that lost its count is noticed, a replica that is behind is not", () => {
  const seen = new SeenCount();
  expect(seen.began(0, 70)).toBe(false);
  expect(seen.began(1, 60)).toBe(false);
  expect(seen.heard(0, { count: 80, previous: 70 })).toBe(false);
  seen.ended(1);
  expect(seen.began(1, 70)).toBe(false);
  seen.ended(0);
  expect(seen.began(0, 0)).toBe(true);
  expect(seen.heard(0, { count: 90, previous: 0 })).toBe(false);
});
