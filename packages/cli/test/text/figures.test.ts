import {
  AlarmSeverity,
  FigureRun,
  ListFiguresResponse,
  NodeFigures,
  SilenceReason,
  SilentNode,
  TagFigureRun,
  TagFigures,
} from "@idmint/proto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ratesOf } from "../../src/text/figures-text.ts";
import { against } from "../support.ts";

const START = new Date("2026-11-23T10:00:00Z");

function run(issued: readonly number[], more: Partial<FigureRun> = {}): FigureRun {
  const none = issued.map(() => 0);
  return FigureRun.create({
    startTime: START,
    issuedIds: issued.map(BigInt),
    calls: none,
    refusedCalls: none,
    ...more,
  });
}

test("a rate is the average of the seconds that were counted, whatever is missing between them", () => {
  const runs = fc.array(fc.array(fc.nat(1e9), { minLength: 1, maxLength: 20 }), { maxLength: 5 });
  fc.assert(
    fc.property(runs, (all) => {
      const rates = ratesOf({ runs: all.map((each) => run(each)) });
      const counted = all.flat();
      if (counted.length === 0) expect(rates).toBeUndefined();
      else {
        const sum = counted.reduce((total, each) => total + each, 0);
        expect(rates?.issued).toBeCloseTo(sum / counted.length, 3);
      }
    }),
  );
});

const answer = ListFiguresResponse.create({
  nodes: [
    NodeFigures.create({
      nodeId: "n1",
      instance: "ids-1",
      zone: "west",
      storeOffsetMillis: -1.26,
      latencyP50Micros: 120,
      latencyP99Micros: 2_345,
      runs: [
        run([100, 300], {
          calls: [10, 30],
          refusedCalls: [0, 4],
          refusals: [{ reason: "OVERLOADED", calls: [0, 4] }],
        }),
      ],
      alarms: [
        {
          alarm: "STORE_LOST",
          severity: AlarmSeverity.CRITICAL,
          summary: "The store does not answer.",
          details: {},
          startTime: START,
          lasting: true,
        },
      ],
    }),
    NodeFigures.create({ nodeId: "n2", instance: "ids-2\u001B[2J", runs: [run([50])] }),
  ],
  silentNodes: [
    SilentNode.create({
      instance: "ids-3",
      address: "10.0.0.3:7600",
      reason: SilenceReason.NO_ANSWER,
      detail: "it did not answer within 1000 ms",
    }),
  ],
  seconds: 10,
});

test("servers stand in a table with their rates, the silent ones with the reason, and alarms below", async () => {
  const { out, exitCode } = await against({ listFigures: () => answer }, "figures");
  expect(exitCode).toBe(0);
  expect(out).toBe(`\
SERVER          ZONE  STATE  IDS/S  CALLS/S  REFUSED/S  P50      P99      CLOCK
ids-1           west  -      200    20       2          0.12 ms  2.35 ms  -1.3 ms
ids-2\\u001b[2J        -      50     0        0          -        -        -
all                          250    20       2

SILENT  ZONE  ADDRESS        WHY
ids-3         10.0.0.3:7600  NO_ANSWER  it did not answer within 1000 ms

REFUSED FOR  CALLS/S
OVERLOADED   2

ALARM       SEVERITY  SERVER  WHEN
STORE_LOST  critical  ids-1   since 2026-11-23T10:00:00.000Z  The store does not answer.
`);
});

test("a tag is shown as each server has it", async () => {
  const asked: unknown[] = [];
  const tagRun = TagFigureRun.create({
    startTime: START,
    issuedIds: [10n, 20n],
    readyIds: [900n, 880n],
    remainingSeconds: [90, 58.67],
  });
  const tagFigures = TagFigures.create({
    known: true,
    epoch: 3n,
    readyIds: 880n,
    waitingCalls: 1,
    runs: [tagRun],
  });
  const ofTag = ListFiguresResponse.create({
    nodes: [
      NodeFigures.create({ instance: "ids-1", zone: "west", tagFigures }),
      NodeFigures.create({ instance: "ids-2", zone: "east", tagFigures: TagFigures.create() }),
    ],
  });
  const play = {
    listFigures: (request: unknown) => {
      asked.push(request);
      return ofTag;
    },
  };
  const { out } = await against(play, "figures", "orders", "--seconds", "60");
  expect(asked).toMatchObject([{ tag: "orders", seconds: 60, thisServer: false }]);
  expect(out).toBe(`\
SERVER  ZONE  IDS/S  IN MEMORY  LASTS  WAITING  EPOCH
ids-1   west  15     880        59 s   1        3
ids-2   east  -      -          -      -        -
`);
});

test("the JSON has every field, and more seconds than there are is an error", async () => {
  const { out } = await against({ listFigures: () => answer }, "figures", "--json");
  expect(JSON.parse(out)).toMatchObject({
    nodes: [{ runs: [{ issuedIds: ["100", "300"], refusedCalls: [0, 4] }] }, { zone: "" }],
    silentNodes: [{ reason: "SILENCE_REASON_NO_ANSWER" }],
  });
  const { exitCode, err } = await against({}, "figures", "--seconds", "901");
  expect([exitCode, err]).toEqual([2, expect.stringContaining("--seconds")]);
});
