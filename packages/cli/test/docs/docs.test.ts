import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { CODE_OF_REASON, type Reason } from "@idmint/core";
import { expect, test } from "vitest";
import { exitCodeOf } from "../../src/process/exit-code.ts";

const root = path.resolve(import.meta.dirname, "../../../..");
const errors = readFileSync(path.join(root, "docs/errors.md"), "utf8");
const reasons = Object.keys(CODE_OF_REASON) as Reason[];

test("docs/errors.md lists every reason with its code, and none that does not exist", () => {
  const rows = [...errors.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)];
  const listed = rows.flatMap(([, code = "", links = ""]) =>
    [...links.matchAll(/\[(\w+)\]\(#(\w+)\)/g)].map(([, reason = "", anchor = ""]) => [
      reason,
      `${code} #${anchor}`,
    ]),
  );
  const wanted = reasons.map((reason) => [
    reason,
    `${CODE_OF_REASON[reason]} #${reason.toLowerCase()}`,
  ]);
  expect(listed.length).toBe(reasons.length);
  expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(wanted));
});

test("docs/errors.md explains every reason: meaning, cause and way out", () => {
  const chapters = errors.split(/^## /m).slice(1);
  expect(chapters.map((chapter) => chapter.split("\n", 1)[0])).toEqual(reasons.toSorted());
  for (const chapter of chapters) {
    const points = [...chapter.matchAll(/^- \*\*([\w ]+):\*\* .{20,}$/gm)].map(([, name]) => name);
    expect(points, chapter).toEqual(["Meaning", "Cause", "Way out"]);
  }
});

test("docs/errors.md says which exit code each kind of error has", () => {
  const sentence = /exit code: (.*), 1 for the rest\./.exec(errors)?.[1] ?? "";
  const stated = sentence.split(", ").flatMap((part) => {
    const [exitCode = "", names = ""] = part.split(" for ");
    return names.split(" and ").map((name) => [name.replaceAll("`", ""), Number(exitCode)]);
  });
  const codes = [...new Set(Object.values(CODE_OF_REASON))];
  const wanted = codes.map((code) => [code, exitCodeOf(code)]).filter(([, exit]) => exit !== 1);
  expect(Object.fromEntries(stated)).toEqual(Object.fromEntries(wanted));
});

test.each(["CONTRIBUTING.md", "README.md"])("%s runs only scripts that exist", (file) => {
  const manifest = readFileSync(path.join(root, "package.json"), "utf8");
  const { scripts } = JSON.parse(manifest) as { readonly scripts: Record<string, string> };
  const ofPnpm = ["install"];
  const ofDependencies = ["changeset"];
  const known = new Set([...Object.keys(scripts), ...ofPnpm, ...ofDependencies]);
  const text = readFileSync(path.join(root, file), "utf8");
  const run = [...text.matchAll(/pnpm@10 (\w[\w:-]*)/g)].map(([, script]) => script ?? "");
  expect(run.length).toBeGreaterThan(0);
  expect(run.filter((script) => !known.has(script))).toEqual([]);
});

const pages = ["docs", "deploy", "packages"].flatMap((folder) =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter(
      (name) => name.endsWith(".md") && !/node_modules|dist\/|^cli\/docs|CHANGELOG/.test(name),
    )
    .map((name) => path.posix.join(folder, name)),
);
const topPages = readdirSync(root).filter((name) => name.endsWith(".md"));

test("the index by task leads to every page", () => {
  const index = readFileSync(path.join(root, "docs/README.md"), "utf8");
  const runbooks = readFileSync(path.join(root, "docs/runbooks/README.md"), "utf8");
  for (const page of pages.filter(
    (name) => name.startsWith("docs/") && name !== "docs/README.md",
  )) {
    const [, runbook] = /^docs\/runbooks\/(.+)$/.exec(page) ?? [];
    if (runbook === undefined || runbook === "README.md") {
      expect(index).toContain(`](${page.slice("docs/".length)}`);
    } else expect(runbooks).toContain(`](${runbook}`);
  }
});

test.each([...topPages, ...pages])("%s links to files and chapters that exist", (file) => {
  const text = readFileSync(path.join(root, file), "utf8");
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? "");
  for (const link of links.filter((target) => !/^https?:/.test(target))) {
    const [name = "", anchor] = link.split("#");
    const target = name === "" ? file : path.join(path.dirname(file), name);
    expect(existsSync(path.join(root, target)), link).toBe(true);
    if (anchor === undefined) continue;
    const linked = readFileSync(path.join(root, target), "utf8");
    const anchors = [...linked.matchAll(/^#+ (.+)$/gm)].map(([, title]) => anchorOf(title ?? ""));
    expect(anchors, link).toContain(anchor);
  }
});

/** As GitHub makes anchors of titles. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

test("no command that a newcomer types stops at a question of npm's", () => {
  const docs = readdirSync(path.join(root, "docs")).filter((name) => name.endsWith(".md"));
  const files = ["README.md", "idmint", ".changeset/README.md", ...docs.map((d) => `docs/${d}`)];
  const told = files.flatMap((file) =>
    [...readFileSync(path.join(root, file), "utf8").matchAll(/npx (?!--yes )\S+/g)].map(String),
  );
  // For a range of versions npx asks again at each run.
  expect(told).toEqual([]);
});

test("docs/http.md has every code that there is", () => {
  const text = readFileSync(path.join(root, "docs/http.md"), "utf8");
  const listed = [...text.matchAll(/`([a-z_]+)`(?=[^|]*\| [45]\d\d)/g)].map(([, code]) => code);
  const codes = new Set(Object.values(CODE_OF_REASON).map((code) => code.toLowerCase()));
  // Nobody is there to hear it.
  codes.delete("cancelled");
  expect(new Set(listed)).toEqual(codes);
});
