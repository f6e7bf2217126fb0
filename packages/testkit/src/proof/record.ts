// The track record: every fault that was found and could have cost a promise, from docs/proof/track-record.yaml.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import { git, root } from "./runs.ts";

/** What a fault could cost. */
const COSTS = ["repeat", "order", "guess", "availability", "access"] as const;
/** Those that are promises; the page lists the others apart. */
const PROMISES: ReadonlySet<string> = new Set(COSTS.slice(0, 3));

/** How faults were found, by what the record calls it. */
const WAYS = {
  "attack 1": "hostile use from four sides for an hour, of 2026-11-21",
  "attack 2": "hostile use from ten sides for about an hour each, of 2026-11-23",
  review: "a hostile review of our own",
  model: "random walks of a model",
  storm: "storms of real processes",
  test: "a test of our own",
  simulation: "`pnpm sim`",
  fuzz: "`pnpm fuzz`",
  nemesis: "`pnpm nemesis`",
  "not recorded": "nobody wrote it down",
} as const;

export interface Fault {
  readonly id: string;
  readonly cost: (typeof COSTS)[number];
  /** One or two sentences. */
  readonly what: string;
  /** The commit that brought it. */
  readonly since: string;
  readonly found: keyof typeof WAYS;
  /** The commit that mended it. */
  readonly mended: string;
  /** The test that fails without the mend, where it lies today. */
  readonly test: string;
  /** The title of the test, or what stands in the file of a title that is put together. */
  readonly title: string;
  /** What the test said on the commit before the mend, with the tests of the mend laid over it. */
  readonly shown?: string;
  /** A seed of `pnpm sim` that shows it, and the commit where it does, as in 11089@4d08a80b. */
  readonly seed?: string;
  /** The title at the mend, where it was another one. */
  readonly titleThen?: string;
  /** The test file to run at the mend, where the title stands in a suite. */
  readonly fileThen?: string;
}

export function trackRecord(): readonly Fault[] {
  return parse(readFileSync(path.join(root, "docs/proof/track-record.yaml"), "utf8")) as Fault[];
}

/** What is wrong with the record: an empty list. */
export function faultsOfRecord(record: readonly Fault[]): readonly string[] {
  const ids = record.map(({ id }) => id);
  return [
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `${id} stands twice`),
    ...record.flatMap((fault) => faultsOf(fault).map((text) => `${fault.id}: ${text}`)),
    ...unknownCommits(record),
  ];
}

function faultsOf({ cost, found, test, title, what }: Fault): readonly string[] {
  const faults: string[] = [];
  if (!COSTS.includes(cost)) faults.push(`no cost is called ${cost}`);
  if (!(found in WAYS)) faults.push(`no way of finding is called ${found}`);
  if (/\|/.test(what)) faults.push("a cell of a table has no |");
  const file = path.join(root, test);
  if (!existsSync(file)) faults.push(`there is no ${test}`);
  else if (!readFileSync(file, "utf8").includes(title)) faults.push(`${test} has no "${title}"`);
  return faults;
}

/** A shallow clone has no history to look into. */
function unknownCommits(record: readonly Fault[]): readonly string[] {
  if (git("rev-parse", "--is-shallow-repository") !== "false") return [];
  const all = new Set(git("log", "--format=%h", "--abbrev=8").split("\n"));
  return record.flatMap(({ id, since, mended, seed }) =>
    [since, mended, ...(seed?.split("@").slice(1) ?? [])]
      .filter((commit) => !all.has(commit))
      .map((commit) => `${id}: no commit ${commit}`),
  );
}

/** The rows of the faults that cost a promise, or of the others. */
export function recordTable(record: readonly Fault[], isPromise: boolean): string {
  const rows = record
    .filter(({ cost }) => PROMISES.has(cost) === isPromise)
    .map(({ what, since, found, mended, test, shown, seed }) => {
      const way = found === "not recorded" ? "–" : found;
      const mark = shown === undefined ? "" : "✓";
      const drawn = seed === undefined ? "" : ` seed ${seed}`;
      return `| ${what} | ${since}…${mended} | ${way} | [${nameOf(test)}](../${test})${mark}${drawn} |`;
    });
  return ["| fault | commits | found by | test |", "|---|---|---|---|", ...rows].join("\n");
}

/** The name of a test file without its endings. */
export function nameOf(test: string): string {
  return path
    .basename(test)
    .replace(/\.ts$/, "")
    .replace(/\.test$/, "");
}

export function recordCounts(record: readonly Fault[]): string {
  const promises = record.filter(({ cost }) => PROMISES.has(cost));
  const shown = record.filter((fault) => fault.shown !== undefined);
  return `${promises.length} faults that could repeat an id, break an order or let a server guess, and ${record.length - promises.length} of the larger ones that cost availability or let somebody in. The tests of ${shown.length} (✓) were run on the commit before the mend, and failed there.`;
}

export function waysOfFinding(): string {
  return Object.entries(WAYS)
    .map(([way, text]) => `- ${way === "not recorded" ? "–" : way}: ${text}`)
    .join("\n");
}
