import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createTrafficState,
  DEFAULT_WEIGHT,
  MAX_TRAFFIC,
  sawTraffic,
  serverNameOf,
  type Traffic,
  trafficAfter,
  trafficOf,
} from "../../../src/server/node/traffic-state.ts";

function rowOf(server: string, revision: number, more: Partial<Traffic> = {}): Traffic {
  return { server, weight: 7, isDraining: false, revision: BigInt(revision), ...more };
}

/** A database of a store, as a backend changes it. */
function write(rows: Traffic[], wanted: Traffic): Traffic {
  const { row, isWritten, removed } = trafficAfter(rows, wanted);
  if (!isWritten) return row;
  const kept = rows.filter(({ server }) => server !== row.server && !removed.includes(server));
  rows.splice(0, rows.length, ...kept, row);
  return row;
}

test("processes of one server share what is said of it, and other names are whole", () => {
  expect(["host:1/3", "host:1", "rack-7", "a/b"].map(serverNameOf)).toEqual([
    "host:1",
    "host:1",
    "rack-7",
    "a/b",
  ]);
  const state = createTrafficState();
  sawTraffic(state, [{ name: "", traffic: [rowOf("host:1", 1, { isDraining: true })] }]);
  expect(trafficOf(state, "host:1/12").isDraining).toBe(true);
  expect(trafficOf(state, "host:12")).toEqual({
    server: "host:12",
    weight: DEFAULT_WEIGHT,
    isDraining: false,
    revision: 0n,
  });
});

test("a poll tells whether anything is another than before", () => {
  const state = createTrafficState();
  const see = (name: string, ...traffic: readonly Traffic[]): boolean =>
    sawTraffic(state, [{ name, traffic }]);
  expect([see("a"), see("a", rowOf("s", 1)), see("a", rowOf("s", 1))]).toEqual([
    false,
    true,
    false,
  ]);
  expect(see("a", rowOf("s", 1, { weight: 8 }))).toBe(true);
  expect([see("b", rowOf("t", 2)), state.revision]).toEqual([true, 2n]);
  // A database that was not heard of this time is as it was.
  expect([see("a"), state.servers.size, state.revision]).toEqual([true, 1, 2n]);
});

test("of databases that differ the newest row counts, and of two as new the more careful one", () => {
  const state = createTrafficState();
  const drained = rowOf("s", 4, { isDraining: true });
  const seen = (...parts: readonly (readonly Traffic[])[]): Traffic => {
    sawTraffic(
      state,
      parts.map((traffic, at) => ({ name: `${at}`, traffic })),
    );
    return trafficOf(state, "s");
  };
  expect(seen([rowOf("s", 5)], [drained])).toEqual(rowOf("s", 5));
  expect(seen([drained], [rowOf("s", 4)])).toEqual(drained);
  expect(seen([rowOf("s", 4)], [drained])).toEqual(drained);
  expect(seen([rowOf("s", 4)], [rowOf("s", 4, { weight: 0 })]).weight).toBe(0);
});

test("a full list makes room of rows that say nothing, or refuses", () => {
  const rows = Array.from({ length: MAX_TRAFFIC }, (_, at) => rowOf(`s${at}`, at + 1));
  expect(() => trafficAfter(rows, rowOf("new", 0))).toThrow("undrain those that are gone");
  expect(write(rows, rowOf("s3", 4, { weight: DEFAULT_WEIGHT })).revision).toBe(1_001n);
  expect(write(rows, rowOf("new", 0)).revision).toBe(1_002n);
  expect(rows.map(({ server }) => server)).not.toContain("s3");
  expect(rows).toHaveLength(MAX_TRAFFIC);
  // What is there already needs no room.
  expect(write(rows, rowOf("s5", 2_000)).revision).toBe(2_001n);
});

// Writers of several servers and databases, each of which may be away. Each goes by what it saw last.
test("no word of an operator is lost, and all servers read the same", () => {
  const step = fc.record({
    writer: fc.nat(2),
    field: fc.constantFrom("weight" as const, "isDraining" as const),
    weight: fc.nat(1_000),
    isDraining: fc.boolean(),
    // Databases in the order in which they are written.
    order: fc.constantFrom([0, 1], [1, 0]),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const databases: Traffic[][] = [[], []];
      const said: { weight: number; isDraining: boolean } = {
        weight: DEFAULT_WEIGHT,
        isDraining: false,
      };
      const seen: Traffic[] = [0, 1, 2].map(() => ({ ...said, server: "s", revision: 0n }));
      for (const { writer, field, order, ...values } of steps) {
        for (let tries = 0; ; tries++) {
          expect(tries).toBeLessThan(5);
          const wanted = { ...seen[writer]!, [field]: values[field] };
          const answers = order.map((at) => write(databases[at]!, wanted));
          const other = answers.find(
            ({ weight, isDraining }) =>
              weight !== wanted.weight || isDraining !== wanted.isDraining,
          );
          seen[writer] = other ?? answers[0]!;
          if (other === undefined) break;
        }
        Object.assign(said, { [field]: values[field] });
        const parts = databases.map((traffic, at) => ({ name: `${at}`, traffic }));
        const states = [parts, parts.toReversed()].map((its) => {
          const state = createTrafficState();
          sawTraffic(state, its);
          return state;
        });
        expect(trafficOf(states[0]!, "s")).toMatchObject(said);
        expect(states[1]!.servers).toEqual(states[0]!.servers);
      }
    }),
  );
});
