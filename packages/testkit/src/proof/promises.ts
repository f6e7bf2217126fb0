// The promises of docs/guarantees.md and what holds them, from docs/proof/promises.yaml.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import { nameOf } from "./record.ts";
import {
  countOf,
  grouped,
  PROOF_COMMANDS,
  type ProofCommand,
  type ProofRun,
  root,
} from "./runs.ts";

export interface Promised {
  /** Words of docs/guarantees.md. */
  readonly says: string;
  /** The same in short. */
  readonly promise: string;
  readonly breaks: string;
  /** Test files below packages/. */
  readonly tests: readonly string[];
  readonly runs?: readonly ProofCommand[];
}

/** What docs/guarantees.md says that it does not promise. */
export interface Excluded {
  readonly says: string;
  readonly excluded: string;
}

export function promises(): readonly (Promised | Excluded)[] {
  const text = readFileSync(path.join(root, "docs/proof/promises.yaml"), "utf8");
  return parse(text) as (Promised | Excluded)[];
}

/** What is wrong with the list, beside docs/guarantees.md: an empty list. */
export function faultsOfPromises(
  list: readonly (Promised | Excluded)[],
  guarantees: string,
): readonly string[] {
  const places = list.map(({ says }) => guarantees.indexOf(says));
  const points = [...guarantees.matchAll(/^- .*$/gm)];
  return [
    ...list
      .filter((_, at) => places[at] === -1)
      .map(({ says }) => `guarantees.md does not say: ${says}`),
    ...list
      .filter((_, at) => at > 0 && (places[at] ?? 0) < (places[at - 1] ?? 0))
      .map(({ says }) => `is not in the order of guarantees.md: ${says}`),
    ...points
      .filter(
        ({ index, 0: { length } }) => !places.some((at) => at >= index && at < index + length),
      )
      .map(([text]) => `nothing is said of: ${text.slice(0, 80)}`),
    ...list.flatMap((one) => ("tests" in one ? missing(one) : [])),
  ];
}

function missing({ tests, runs = [] }: Promised): readonly string[] {
  return [
    ...tests
      .filter((test) => !existsSync(path.join(root, "packages", test)))
      .map((test) => `there is no packages/${test}`),
    ...runs.filter((run) => !PROOF_COMMANDS.includes(run)).map((run) => `nothing is called ${run}`),
  ];
}

export function promiseTable(
  list: readonly (Promised | Excluded)[],
  ran: readonly ProofRun[],
): string {
  const rows = list.flatMap((one) => ("tests" in one ? [rowOf(one, ran)] : []));
  return [
    "| promise | what would break it | tests | how often |",
    "|---|---|---|---|",
    ...rows,
  ].join("\n");
}

function rowOf({ promise, breaks, tests, runs = [] }: Promised, ran: readonly ProofRun[]): string {
  const links = tests.map((test) => `[${nameOf(test)}](../packages/${test})`).join(" ");
  const long = runs.map((command) => [command, countOf(command, ran)] as const);
  const times = long.flatMap(([command, count]) =>
    count === 0 ? [] : [`${command}×${grouped(count)}`],
  );
  const often = [...new Set(tests.map(turn)), ...times].join(", ");
  return `| ${promise} | ${breaks} | ${links} | ${often} |`;
}

/** Whole systems and storms take turns; all else runs with every commit. */
function turn(test: string): string {
  return /\.(?:e2e|chaos)\.test\.ts$/.test(test) ? "turns" : "always";
}

export function excludedList(list: readonly (Promised | Excluded)[]): string {
  return list.flatMap((one) => ("excluded" in one ? [`- ${one.excluded}`] : [])).join("\n");
}
