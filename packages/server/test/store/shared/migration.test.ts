// Which schemas a server works with, and what a migration finds to do.
import type { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import {
  type AppliedMigration,
  checksumOf,
  type Migration,
  reportOf,
  schemaStanding,
  workableVersion,
} from "../../../src/store/shared/migration.ts";

/** Steps of a schema; the last one works with servers of `worksFrom` and later. */
function stepsUpTo(version: number, worksFrom = version - 1): readonly Migration[] {
  return Array.from({ length: version }, (_, at) => {
    const number = at + 1;
    const from = number === version ? worksFrom : Math.max(1, number - 1);
    return { number, name: `step ${number}`, worksFrom: Math.max(1, from), sql: `do ${number}` };
  });
}

function appliedOf(steps: readonly Migration[]): readonly AppliedMigration[] {
  return steps.map((step) => ({
    number: step.number,
    worksFrom: step.worksFrom,
    checksum: checksumOf(step),
  }));
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toMatchObject({ reason: "SCHEMA_MISMATCH" });
    return (error as IdmintError).message;
  }
  throw new Error("it was not refused");
}

test("a server works with its own schema, and with the next one that says that it may", () => {
  const known = stepsUpTo(2);
  expect(workableVersion(known, appliedOf(known))).toBe(2);
  expect(workableVersion(known, appliedOf(stepsUpTo(3)))).toBe(3);
  expect(workableVersion(known, appliedOf(stepsUpTo(4, 2)))).toBe(4);
  expect(schemaStanding(known, appliedOf(stepsUpTo(3)))).toEqual({
    schemaVersion: 3,
    knownSchemaVersion: 2,
    schemaIllness: "",
  });
});

test("a server refuses a schema that needs newer servers, whichever of its steps says so", () => {
  const known = stepsUpTo(2);
  const text =
    "has schema 3, which needs servers of schema 3 or later, and this release is of schema 2";
  expect(refusal(() => workableVersion(known, appliedOf(stepsUpTo(3, 3))))).toContain(text);
  const between = [...stepsUpTo(3, 3), ...stepsUpTo(4, 2).slice(3)];
  expect(refusal(() => workableVersion(known, appliedOf(between)))).toContain("needs servers of");
  expect(refusal(() => reportOf(known, appliedOf(between)))).toContain("upgrade idmint");
});

test("a server refuses a schema that lacks its own steps, or has others in their places", () => {
  const known = stepsUpTo(3);
  const older = refusal(() => workableVersion(known, appliedOf(stepsUpTo(2))));
  expect(older).toContain("schema 2, older than 3; run: idmint migrate");
  expect(refusal(() => workableVersion(known, []))).toContain("has no schema of idmint's yet");
  const other = appliedOf(known).map((step) => ({ ...step, checksum: "other" }));
  expect(refusal(() => workableVersion(known, other))).toContain("step 1 of the store's schema");
  expect(schemaStanding(known, [])).toMatchObject({ schemaVersion: 0 });
});

test("a migration finds nothing to do in a store that is newer and works with this release", () => {
  const known = stepsUpTo(2);
  const nothing = { steps: [], created: false };
  expect(reportOf(known, appliedOf(stepsUpTo(3)))).toEqual({ from: 3, to: 3, ...nothing });
  expect(reportOf(known, appliedOf(known))).toEqual({ from: 2, to: 2, ...nothing });
  const report = reportOf(known, appliedOf(stepsUpTo(1)));
  expect(report).toMatchObject({ from: 1, to: 2, created: false });
  expect(report.steps.map(({ number }) => number)).toEqual([2]);
  expect(reportOf(known, [])).toMatchObject({ from: 0, to: 2, created: true });
});
