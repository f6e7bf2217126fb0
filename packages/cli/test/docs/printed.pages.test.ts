// Every shell and JavaScript block of the pages for users, as printed: a page in one shell, from an empty folder. Servers listen
// where the pages say, so one page at a time, and nothing else may listen there.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { expect, test } from "vitest";
import { type Block, blocksOf, pages } from "./pages/blocks.ts";
import { NEEDS, NODES, Stage } from "./pages/stage.ts";
import { serves } from "./pages/terminal.ts";
import { root } from "./snippets.ts";

/** Why blocks are not run, and how many: one more has to be allowed here. */
const FRAGMENTS: Readonly<Record<string, readonly [count: number, reason: string]>> = {
  clone: [4, "takes the clone, which the tests run from; CI begins with it"],
  cluster: [2, "three members of an etcd, three Sentinels: each page has one server"],
  docker: [4, "Docker's engine; image.pack.test.ts and compose.e2e.test.ts take the files"],
  fault: [2, "wanted, or printed, only after a fault, which other tests bring about"],
  host: [10, "changes a host: units of systemd, /etc and /var/lib"],
  kubernetes: [4, "a cluster of Kubernetes; chart.e2e.test.ts takes the chart"],
  mysql: [2, "MySQL"],
  npm: [1, "installs from npm's registry"],
  prometheus: [1, "Prometheus' files; rules.test.ts takes them"],
  shell: [1, "start-up files of shells; completion.e2e.test.ts loads them"],
  varies: [1, "prints times, rates and the like"],
};

/** Pages that are typed amid the faults, the compilers or the libraries that they are about, each by a test of its own. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "docs/fail-over.md": "packages/cli/test/docs/fail-over.e2e.test.ts",
  "docs/runbooks/": "packages/cli/test/docs/runbooks.e2e.test.ts",
  "docs/languages.md": "packages/testkit/test/polyglot/languages.e2e.test.ts",
};

const PORTS = [7600, 7601, 7610, 7611, 5432, 6379, 2379];
const here = pages().filter(
  (page) => !Object.keys(ELSEWHERE).some((begin) => page.startsWith(begin)),
);
const runnable = new Set(["sh", "js"]);

test("each fragment has a reason, and there are no more of them than are listed here", () => {
  const marks = here.flatMap((page) => blocksOf(page)).flatMap(({ fragment }) => fragment ?? []);
  const counts: Record<string, number> = {};
  for (const mark of marks) counts[mark] = (counts[mark] ?? 0) + 1;
  const listed = Object.fromEntries(
    Object.entries(FRAGMENTS).map(([mark, [count]]) => [mark, count]),
  );
  expect(counts).toEqual(listed);
  for (const file of Object.values(ELSEWHERE))
    expect(existsSync(path.join(root, file)), file).toBe(true);
});

test.each(here.filter((page) => blocksOf(page).some(isRun)))("%s", async (page) => {
  for (const port of PORTS) await untilFree(port);
  const needs = NEEDS[page] ?? {};
  await using stage = await Stage.set(needs);
  const blocks = blocksOf(page);
  const first = blocks.find(
    ({ language, fragment }) => language === "sh" && fragment === undefined,
  );
  const begins = needs.noServer === true || (first !== undefined && serves(first.code));
  if (!begins) await stage.terminal.type("idmint start-dev");
  let printed = "";
  for (const block of blocks) {
    if (block.fragment !== undefined) continue;
    if (block.file !== undefined) save(stage.folder, block.file, block.code);
    if (block.language === "sql") await stage.sql(block.code);
    else if (block.language === "text")
      expect(printed.trimEnd(), block.place).toBe(block.code.trimEnd());
    else if (isRun(block)) printed = await run(stage, block);
  }
});

function isRun({ language, fragment }: Block): boolean {
  return runnable.has(language) && fragment === undefined;
}

async function run(
  { terminal, folder }: Stage,
  { place, language, file, code }: Block,
): Promise<string> {
  try {
    if (language === "sh") return await terminal.type(code);
    const name = file ?? "program.mjs";
    save(folder, name, code);
    let printed = "";
    for (const node of NODES) printed = await terminal.type(`'${node}' ${name}`);
    return printed;
  } catch (error) {
    throw new Error(place, { cause: error });
  }
}

function save(folder: string, name: string, text: string): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Throws if somebody else listens there. A server that was just ended may take a moment. */
async function untilFree(port: number): Promise<void> {
  const isFree = (): Promise<boolean> =>
    new Promise((resolve) => {
      const probe = createServer();
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
  await expect
    .poll(isFree, { timeout: 20_000, message: `port ${port} is taken: the pages need it` })
    .toBe(true);
}

test("the pages that the command carries link to nothing that it lacks", () => {
  const folder = path.join(root, "packages/cli/docs");
  const dead = readdirSync(folder).flatMap((name) => {
    const links = readFileSync(path.join(folder, name), "utf8").matchAll(
      /\]\((?!https?:)([^)#]+)/g,
    );
    return [...links]
      .filter(([, target = ""]) => !existsSync(path.join(folder, target)))
      .map(String);
  });
  expect(dead).toEqual([]);
});
