import { spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../spawn.ts";
import { root } from "./snippets.ts";

const diagrams = globSync(["ARCHITECTURE.md", "docs/**/*.md"], { cwd: root }).flatMap((file) => {
  const text = readFileSync(path.join(root, file), "utf8");
  return [...text.matchAll(/^```mermaid\n([^]*?)^```$/gm)].map(([, diagram]) => [file, diagram]);
});

test("diagrams are of the sorts that can be parsed", () => {
  expect(diagrams.length).toBeGreaterThan(3);
  for (const [file, diagram] of diagrams) {
    expect(diagram, file).toMatch(/^(?:sequenceDiagram|flowchart (?:TD|LR))\n/);
  }
});

// Mermaid and what it needs take 200 MB, so it is fetched in the long form only.
test.runIf(process.env["IDMINT_LONG"] === "1")("mermaid's own parser takes every diagram", () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  writeFileSync(path.join(folder, "diagrams.json"), JSON.stringify(diagrams));
  writeFileSync(path.join(folder, "package.json"), "{}");
  writeFileSync(
    path.join(folder, "parse.mjs"),
    `import { readFileSync } from "node:fs";
     import { JSDOM } from "jsdom";
     // Labels are cleaned as in a browser.
     const { window } = new JSDOM("");
     Object.assign(globalThis, { window, document: window.document });
     const { default: mermaid } = await import("mermaid");
     for (const [file, diagram] of JSON.parse(readFileSync("diagrams.json", "utf8"))) {
       await mermaid.parse(diagram).catch((error) => { throw new Error(file + ": " + error); });
     }
     // A parser that takes anything would prove nothing.
     if (await mermaid.parse("flowchart LR\\n a--", { suppressErrors: true })) throw new Error("no parser");
     console.log("parsed");`,
  );
  const run = (command: string, ...args: string[]): string => {
    const { stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: "utf8" });
    return `${stdout}${stderr}`;
  };
  const fetched = run(
    "npm",
    "install",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "mermaid@12.3.0",
    "jsdom@26.1.0",
  );
  expect(run(process.execPath, "parse.mjs"), fetched).toBe("parsed\n");
});
