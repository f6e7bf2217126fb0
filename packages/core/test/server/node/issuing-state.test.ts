import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type IssuingState,
  sawIssuing,
  stoppedSince,
} from "../../../src/server/node/issuing-state.ts";
import type { Issuing } from "../../../src/server/store/issuing.ts";

const part = (name: string, revision: bigint, stoppedAtMs?: number, incarnation = "one") => ({
  name,
  incarnation,
  issuing: { revision, stoppedAtMs },
});

/** What a server makes of polls. */
function server() {
  let state: IssuingState = [];
  const effects: string[] = [];
  const saw = (...parts: ReturnType<typeof part>[]): string => {
    const seen = sawIssuing(state, parts);
    ({ state } = seen);
    effects.push(seen.effect?.type ?? "nothing");
    return effects.at(-1) ?? "";
  };
  return { saw, isStopped: () => stoppedSince(state) !== undefined, stateOf: () => state };
}

test("a stop and a resumption are told once each", () => {
  const { saw, isStopped, stateOf } = server();
  expect(saw(part("", 0n))).toBe("nothing");
  expect(saw(part("", 4n, 1_000))).toBe("stop-issuing");
  expect(stoppedSince(stateOf())).toBe(1_000);
  const before = stateOf();
  expect(saw(part("", 4n, 1_000))).toBe("nothing");
  expect(stateOf()).toBe(before);
  expect(saw(part("", 5n))).toBe("resume-issuing");
  expect(isStopped()).toBe(false);
});

test("a server that starts finds the others stopped", () => {
  expect(server().saw(part("", 9n, 5))).toBe("stop-issuing");
});

test("who hears of a stop and its resumption at once drops what it holds", () => {
  const { saw } = server();
  saw(part("", 0n));
  expect(saw(part("", 6n))).toBe("drop-held");
  expect(saw(part("", 6n))).toBe("nothing");
  saw(part("", 7n, 1));
  // Resumed, and stopped again.
  expect(saw(part("", 9n, 3))).toBe("nothing");
});

test("a database that went back to before the stop resumes nothing, until it is accepted as it is", () => {
  const { saw, isStopped } = server();
  saw(part("", 3n));
  saw(part("", 4n, 1));
  expect(saw(part("", 3n))).toBe("nothing");
  expect(isStopped()).toBe(true);
  // An accept keeps what the store says.
  expect(saw(part("", 4n, 1, "two"))).toBe("nothing");
  expect(saw(part("", 3n, undefined, "two"))).toBe("nothing");
  expect(isStopped()).toBe(true);
  expect(saw(part("", 3n, undefined, "three"))).toBe("resume-issuing");
});

test("one database that says so stops everything, until the last of them takes it back", () => {
  const { saw, isStopped } = server();
  saw(part("a", 0n), part("b", 0n));
  expect(saw(part("a", 3n, 70))).toBe("stop-issuing");
  expect(saw(part("a", 3n, 70), part("b", 2n, 60))).toBe("nothing");
  expect(saw(part("a", 4n))).toBe("nothing");
  // Nothing of b is known anew.
  expect(saw(part("a", 4n))).toBe("nothing");
  expect(isStopped()).toBe(true);
  expect(saw(part("b", 3n))).toBe("resume-issuing");
});

test("whatever polls bring, nothing of before a stop that was obeyed is held after it", () => {
  const steps = fc.array(fc.record({ name: fc.constantFrom("a", "b"), polls: fc.boolean() }), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(steps, (all) => {
      const store = new Map<string, Issuing>([
        ["a", { revision: 0n, stoppedAtMs: undefined }],
        ["b", { revision: 0n, stoppedAtMs: undefined }],
      ]);
      const { saw, isStopped } = server();
      saw(part("a", 0n), part("b", 0n));
      /** How many stops there had been in each database when what is held was loaded; undefined: nothing is held. */
      const stops = new Map([
        ["a", 0],
        ["b", 0],
      ]);
      let held: string | undefined = "0,0";
      const now = (): string => [...stops.values()].join(",");
      for (const { name, polls } of all) {
        const old = store.get(name) ?? { revision: 0n, stoppedAtMs: undefined };
        const isStop = old.stoppedAtMs === undefined;
        store.set(name, { revision: old.revision + 1n, stoppedAtMs: isStop ? 1 : undefined });
        if (isStop) stops.set(name, (stops.get(name) ?? 0) + 1);
        if (!polls) continue;
        const effect = saw(
          ...[...store].map(([each, { revision, stoppedAtMs }]) =>
            part(each, revision, stoppedAtMs),
          ),
        );
        if (effect === "stop-issuing" || effect === "drop-held") held = undefined;
        const areStopped = [...store.values()].some((each) => each.stoppedAtMs !== undefined);
        expect(isStopped()).toBe(areStopped);
        if (!isStopped()) held ??= now();
        if (held !== undefined) expect(held).toBe(now());
      }
    }),
    { numRuns: 500 },
  );
});
