// Callers of a sequence in Redis, and the judgement of what they were answered.
import { SequenceBackend, SequenceKind, Tag } from "@idmint/proto";
import { expect } from "vitest";
import type { Child } from "../../../src/fleet/child.ts";
import type { Fleet } from "../../../src/fleet/fleet.ts";
import { type Answer, faultsOf, readHistory } from "../../../src/fleet/history.ts";
import type { LoadReport } from "../../../src/fleet/load-config.ts";
import { EXPECTED } from "../../chaos.ts";

export const TAG = "bills";
/** About a thousand a second in all. */
const PROCESSES = 2;
const STREAMS = 5;
const PER_SECOND = 100;

export async function createSequence({ first: { api } }: Fleet): Promise<void> {
  const value = { ...SequenceKind.create(), backend: SequenceBackend.REDIS, step: 2_000 };
  const tag = { ...Tag.create(), name: TAG, kind: { $case: "sequence", value } as const };
  await api.send(api.tags.createTag.bind(api.tags), { tag, validateOnly: false });
}

export async function startCallers(fleet: Fleet): Promise<readonly Child[]> {
  const session = { kind: "id", perSecond: PER_SECOND, parallel: 16 } as const;
  const activities = Array.from({ length: STREAMS }, () => session);
  const callers = await Promise.all(
    Array.from({ length: PROCESSES }, () =>
      fleet.startCallers("history", { tag: TAG, activities, deadlineMs: 1_000 }),
    ),
  );
  await Promise.all(callers.map((child) => child.waitForOutput("first answer")));
  return callers;
}

/**
 * No id twice, none out of order, none above the floor, and no refusal that is a fault of ours. `isOrdered` tells of which
 * answers order was promised.
 */
export async function judge(
  fleet: Fleet,
  callers: readonly Child[],
  isOrdered: (answer: Answer) => boolean = () => true,
): Promise<{
  readonly history: readonly Answer[];
  readonly errors: Readonly<Record<string, number>>;
}> {
  const reports = await Promise.all(callers.map((child) => fleet.stopCallers(child)));
  const history = readHistory(fleet.records);
  const errors = sumOf(reports);
  expect(faultsOf(history).repeats).toEqual([]);
  expect(faultsOf(history.filter(isOrdered)).inversions).toEqual([]);
  const { floor } = await fleet.first.api.getTag(TAG);
  for (const { last } of history) expect(last).toBeLessThanOrEqual(floor);
  const expected = new Set([...EXPECTED, "UNAVAILABLE MAX_NOT_RAISED"]);
  expect(Object.keys(errors).filter((name) => !expected.has(name))).toEqual([]);
  return { history, errors };
}

function sumOf(reports: readonly LoadReport[]): Readonly<Record<string, number>> {
  const errors: Record<string, number> = {};
  for (const report of reports) {
    for (const [name, count] of Object.entries(report.errors)) {
      errors[name] = (errors[name] ?? 0) + count;
    }
  }
  return errors;
}
