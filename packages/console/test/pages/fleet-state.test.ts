import fc from "fast-check";
import { expect, test } from "vitest";
import {
  alarmsOf,
  type Figures,
  fleetOf,
  type NodeFigures,
  nowOf,
  rateOf,
  refusalsOf,
  worstStore,
} from "../../src/pages/overview/fleet-state.ts";

type Run = NodeFigures["runs"][number];
const LABELS = { issued: "issued", others: "others" };
const START = 1_700_000_000;

/** A run that begins so many seconds after START, by the server's own clock. */
function run(after: number, issued: readonly number[], more: Partial<Run> = {}): Run {
  const zeros = issued.map(() => 0);
  return {
    startTime: new Date((START + after) * 1_000).toISOString(),
    issuedIds: issued.map(String),
    calls: issued,
    refusedCalls: zeros,
    refusals: [],
    latencyP50Micros: [],
    latencyP99Micros: [],
    loopDelayMicros: zeros,
    loopBusyPermille: zeros,
    waitingCalls: zeros,
    ...more,
  };
}

function node(
  instance: string,
  runs: readonly Run[],
  more: Partial<NodeFigures> = {},
): NodeFigures {
  return {
    nodeId: `id-${instance}`,
    instance,
    zone: "",
    aheadMillis: 0,
    wayMillis: 1,
    alarms: [],
    runs,
    ...more,
  };
}

function figures(nodes: readonly NodeFigures[], seconds = 4): Figures {
  return { nodes, silentNodes: [], seconds };
}

function issuedOf(all: Figures): readonly (number | null)[] {
  return fleetOf(all, LABELS).issued.lines[0]?.values ?? [];
}

test("servers are added second by second, by the clock of the one that was asked", () => {
  const all = figures([
    node("a", [run(0, [1, 2, 3, 4])]),
    // Its clock is 10 s ahead, so what it calls 10 is 0 here.
    node("b", [run(10, [10, 20, 30, 40])], { aheadMillis: 10_020 }),
  ]);
  const { issued } = fleetOf(all, LABELS);
  expect(issued.seconds).toEqual([START, START + 1, START + 2, START + 3]);
  expect(issued.lines[0]?.values).toEqual([11, 22, 33, 44]);
});

test("the chart ends where servers have told, and one that stopped counting does not hold it back", () => {
  const a = node("a", [run(0, [1, 1, 1, 1, 1])]);
  const b = node("b", [run(0, [1, 1, 1, 1])]);
  const stopped = node("c", [run(-100, [9, 9])]);
  expect(issuedOf(figures([a, b, stopped]))).toEqual([2, 2, 2, 2]);
});

test("what nobody knows is a gap, and no zero", () => {
  const a = node("a", [run(0, [1]), run(3, [4])]);
  expect(issuedOf(figures([a]))).toEqual([1, null, null, 4]);
  expect(issuedOf(figures([]))).toEqual([]);
});

function times(micros: readonly number[]): Partial<Run> {
  return {
    latencyP50Micros: micros,
    latencyP99Micros: micros.map((one) => (one < 0 ? -1 : one * 10)),
  };
}

test("latency is that of the slowest server, and nothing where no call was", () => {
  const a = node("a", [run(0, [1, 1, 1, 1], times([5, -1, -1, 7]))]);
  const b = node("b", [run(0, [1, 1, 1, 1], times([-1, 6, -1, 9]))]);
  const { latency } = fleetOf(figures([a, b]), LABELS);
  expect(latency.lines).toEqual([
    { label: "p99", values: [50, 60, null, 90] },
    { label: "p50", values: [5, 6, null, 9] },
  ]);
});

test("rare reasons are one line, so that all lines together are all refusals", () => {
  const reason = fc.constantFrom("A", "B", "C", "D", "E", "F", "G", "H");
  const counts = fc.array(fc.nat({ max: 50 }), { minLength: 4, maxLength: 4 });
  const refusals = fc.uniqueArray(fc.record({ reason, calls: counts }), {
    selector: ({ reason: name }) => name,
  });
  fc.assert(
    fc.property(fc.array(refusals, { minLength: 1, maxLength: 3 }), (each) => {
      const nodes = each.map((its, at) =>
        node(String(at), [run(0, [1, 1, 1, 1], { refusals: its })]),
      );
      const { lines } = fleetOf(figures(nodes), LABELS).refusals;
      expect(lines.length).toBeLessThanOrEqual(6);
      const shown = lines
        .flatMap(({ values }) => values)
        .reduce<number>((sum, v) => sum + (v ?? 0), 0);
      const all = each.flat().flatMap(({ calls }) => calls);
      expect(shown).toBe(all.reduce((sum, calls) => sum + calls, 0));
      const totals = refusalsOf(nodes).map(({ calls }) => calls);
      expect(totals).toEqual(totals.toSorted((a, b) => b - a));
    }),
  );
});

test("now is the mean of the newest seconds that are known", () => {
  expect(nowOf([100, 1, 2, null, 3, 4])).toBe(2.5);
  expect(nowOf([null, null])).toBeUndefined();
  expect(rateOf(node("a", [run(0, [100, 5, 5, 5, 5, 5])]))).toBe(5);
  expect(rateOf(node("a", []))).toBeUndefined();
});

function alarm(
  name: string,
  more: Partial<NodeFigures["alarms"][number]> = {},
): NodeFigures["alarms"][number] {
  return {
    alarm: name,
    severity: "ALARM_SEVERITY_WARNING",
    summary: `${name} happened`,
    details: {},
    startTime: "2026-01-01T00:00:00Z",
    lasting: true,
    ...more,
  };
}

test("an alarm of several servers is told once; what lasts and is critical comes first", () => {
  const critical = { severity: "ALARM_SEVERITY_CRITICAL" };
  const nodes = [
    node("b", [], { alarms: [alarm("SLOW"), alarm("LOST", critical)] }),
    node("a", [], { alarms: [alarm("SLOW", { startTime: "2026-01-02T00:00:00Z" })] }),
    node("c", [], { alarms: [alarm("WAS", { ...critical, lasting: false })] }),
  ];
  const shown = alarmsOf(nodes).map(({ alarm: its, instances }) => [its.alarm, instances]);
  expect(shown).toEqual([
    ["LOST", ["b"]],
    ["SLOW", ["a", "b"]],
    ["WAS", ["c"]],
  ]);
});

function seeing(state: string): NodeFigures {
  return node(state, [], { status: { store: { state } } as NodeFigures["status"] });
}

test("the store is shown as the server sees it that has the most trouble", () => {
  const [good, gone, fenced] = ["GRANTING", "UNREACHABLE", "FENCED"].map((name) =>
    seeing(`STORE_STATE_${name}`),
  );
  expect(worstStore([good!, gone!, good!])?.state).toBe("STORE_STATE_UNREACHABLE");
  expect(worstStore([good!, gone!, fenced!])?.state).toBe("STORE_STATE_FENCED");
  expect(worstStore([])).toBeUndefined();
});
