// docs/proof.md and the README's sentence are what docs/proof/ says, and that is true of this repository.
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { filled, proofPage, readmeWithProof, runTable } from "../../src/proof/page.ts";
import { faultsOfPromises, promises, promiseTable } from "../../src/proof/promises.ts";
import { faultsOfRecord, recordTable, trackRecord } from "../../src/proof/record.ts";
import {
  type ProofRun,
  proofRuns,
  PROOF_COMMANDS,
  root,
  RUNS_KEPT,
  withRun,
} from "../../src/proof/runs.ts";

const guarantees = textOf("docs/guarantees.md");

function textOf(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

function runOf(command: ProofRun["command"], count: number): ProofRun {
  const counted = { histories: count, violations: 0 };
  return { command, line: "pnpm x", date: "2026-11-28", commit: "28ce0dc5", seconds: 60, counted };
}

test("docs/proof.md and the README are what `pnpm generate` makes of docs/proof/", () => {
  expect(textOf("docs/proof.md")).toBe(proofPage());
  expect(textOf("README.md")).toBe(readmeWithProof());
});

test("docs/proof.md is no longer than a person reads, but for lists that grow", () => {
  const lists = /<!-- (runs|record|others) -->[^]*?<!-- \/\1 -->/g;
  expect(textOf("docs/proof.md").replaceAll(lists, "").split(/\s+/).length).toBeLessThan(1_800);
});

test("each point of docs/guarantees.md is promised or excluded, in its order, and each promise has tests", () => {
  expect(faultsOfPromises(promises(), guarantees)).toEqual([]);
});

test("each fault of the record has a test of today and commits of this history", () => {
  expect(faultsOfRecord(trackRecord())).toEqual([]);
});

test("each run in the file was counted, by a command that there is", () => {
  for (const { command, counted } of proofRuns()) {
    expect(PROOF_COMMANDS).toContain(command);
    expect(Object.values(counted).every(Number.isFinite)).toBe(true);
  }
});

test("what is not true is told", () => {
  const [fault] = trackRecord();
  if (fault === undefined) throw new Error("no fault");
  const wrong = { ...fault, test: "packages/none.test.ts", mended: "00000000" };
  const title = { ...fault, title: "no such title" };
  expect(faultsOfRecord([wrong]).join()).toContain("there is no packages/none.test.ts");
  expect(faultsOfRecord([title]).join()).toContain('has no "no such title"');
  expect(faultsOfRecord([fault, fault])).toEqual([`${fault.id} stands twice`]);
  const [first, second, ...others] = promises();
  if (first === undefined || second === undefined) throw new Error("no promises");
  expect(faultsOfPromises([second, ...others], guarantees).join()).toContain("nothing is said of");
  expect(faultsOfPromises([second, first, ...others], guarantees).join()).toContain("order");
  const said = { ...first, says: "Ids are large." };
  expect(faultsOfPromises([said], guarantees)).toContain(
    "guarantees.md does not say: Ids are large.",
  );
});

test("the file keeps the newest runs of each command", () => {
  let runs: readonly ProofRun[] = [runOf("fuzz", 7)];
  for (let at = 1; at <= RUNS_KEPT + 2; at++) runs = withRun(runs, runOf("sim", at));
  expect(runs.map(({ command, counted }) => [command, counted["histories"]])).toEqual([
    ["sim", 3],
    ["sim", 4],
    ["sim", 5],
    ["fuzz", 7],
  ]);
});

test("the page shows what was counted, and nothing of a command that did not run", () => {
  const runs = [runOf("sim", 1_000), runOf("sim", 234)];
  expect(runTable(runs)).toContain("| 28ce0dc5 | 60 | 1,000 histories, 0 violations |");
  const promised = {
    says: "",
    promise: "p",
    breaks: "b",
    tests: [],
    runs: ["sim", "nemesis"],
  } as const;
  expect(promiseTable([promised], runs)).toContain("| p | b |  | sim×1,234 |");
});

test("a fault whose test failed before its mend is marked", () => {
  const [fault] = trackRecord();
  if (fault === undefined) throw new Error("no fault");
  const { shown, ...plain } = fault;
  expect(recordTable([plain], true)).not.toContain("✓");
  expect(recordTable([{ ...plain, shown: shown ?? "failed" }], true)).toContain("✓");
  expect(recordTable([plain], false)).not.toContain(fault.what);
});

test("a part of a page is replaced between its marks, which stand once", () => {
  expect(filled("a\n<!-- x -->\nold\n<!-- /x -->\nb", { x: "new" })).toBe(
    "a\n<!-- x -->\nnew\n<!-- /x -->\nb",
  );
  expect(() => filled("a", { x: "new" })).toThrow("<!-- x --> has to stand once");
});
