import fc from "fast-check";
import { expect, test } from "vitest";
import { type Handshake, Handshakes } from "../../src/tls/handshakes-state.ts";

const LIMITS = { running: 4, waiting: 8, perSecond: 100, burst: 3 };

/** Who begins at this time, in order; those that lose their place with it are told. */
function begun(handshakes: Handshakes<string>, now: number): readonly Handshake<string>[] {
  const all: Handshake<string>[] = [];
  for (;;) {
    const next = handshakes.next(now);
    if (next === undefined || typeof next === "number") return all;
    all.push(next.handshake);
  }
}

function lose(from: Set<Handshake<number>>, its: number | undefined): void {
  for (const one of from) if (one.its === its) from.delete(one);
}

test("no more begin at once than the burst, and then one for each part of a second", () => {
  const handshakes = new Handshakes<string>({ ...LIMITS, running: 100 });
  for (let i = 0; i < 8; i += 1) handshakes.arrive("a", String(i));
  expect(begun(handshakes, 0).map(({ its }) => its)).toEqual(["0", "1", "2"]);
  expect(handshakes.next(0)).toBe(10);
  expect(begun(handshakes, 9)).toEqual([]);
  expect(begun(handshakes, 10)).toHaveLength(1);
  expect(begun(handshakes, 30)).toHaveLength(2);
  expect(begun(handshakes, 10_000)).toHaveLength(2);
  // A quiet time is worth no more than the burst.
  for (let i = 0; i < 8; i += 1) handshakes.arrive("a", String(i));
  expect(begun(handshakes, 20_000)).toHaveLength(3);
});

test("who comes behind many of another address waits for one of them", () => {
  const handshakes = new Handshakes<string>({ ...LIMITS, burst: 1 });
  for (let i = 0; i < 6; i += 1) handshakes.arrive("stranger", `stranger ${i}`);
  handshakes.arrive("honest", "honest");
  const order = Array.from({ length: 3 }, (_, at) => begun(handshakes, at * 10)[0]?.its);
  expect(order).toEqual(["stranger 0", "honest", "stranger 1"]);
});

test("whoever is slow about a handshake keeps nobody of another address from one", () => {
  const handshakes = new Handshakes<string>({ ...LIMITS, burst: 100 });
  for (let i = 0; i < 6; i += 1) handshakes.arrive("slow", `slow ${i}`);
  expect(begun(handshakes, 0)).toHaveLength(LIMITS.running);
  expect(handshakes.next(1_000)).toBeUndefined();
  handshakes.arrive("honest", "honest");
  expect(handshakes.next(1_000)).toMatchObject({ handshake: { its: "honest" }, loser: "slow 3" });
});

test("whatever comes and goes, the bounds hold, and whoever is to begin may", () => {
  const step = fc.record({
    address: fc.constantFrom("a", "b", "c"),
    passes: fc.integer({ min: 0, max: 30 }),
    ends: fc.option(fc.nat()),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const handshakes = new Handshakes<number>(LIMITS);
      const waiting = new Set<Handshake<number>>();
      const running = new Set<Handshake<number>>();
      const times: number[] = [];
      let now = 0;
      for (const [at, { address, passes, ends }] of steps.entries()) {
        now += passes;
        const open = [...waiting, ...running];
        const gone = ends === null ? undefined : open[ends % Math.max(1, open.length)];
        if (gone === undefined) {
          const arrived = handshakes.arrive(address, at);
          if (arrived !== "no place is free") {
            lose(waiting, arrived.loser);
            waiting.add(arrived.handshake);
          }
        } else {
          handshakes.end(gone);
          handshakes.end(gone);
          waiting.delete(gone);
          running.delete(gone);
        }
        let next = handshakes.next(now);
        while (next !== undefined && typeof next !== "number") {
          lose(running, next.loser);
          expect(waiting.delete(next.handshake)).toBe(true);
          running.add(next.handshake);
          times.push(now);
          next = handshakes.next(now);
        }
        expect(waiting.size).toBeLessThanOrEqual(LIMITS.waiting);
        expect(running.size).toBeLessThanOrEqual(LIMITS.running);
        // Nobody waits while there are both a place and a turn.
        if (next === undefined && waiting.size > 0) expect(running.size).toBe(LIMITS.running);
      }
      for (const [at, from] of times.entries()) {
        const within = times.slice(at).filter((time) => time - from <= 100).length;
        expect(within).toBeLessThanOrEqual(LIMITS.burst + 0.1 * LIMITS.perSecond + 1);
      }
    }),
  );
});
