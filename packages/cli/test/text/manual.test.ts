import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { CODE_OF_REASON } from "@idmint/core";
import { expect, test } from "vitest";
import { plainMarkdown } from "../../src/text/markdown.ts";
import { TOPICS } from "../../src/text/topics.ts";
import { idmint } from "../support.ts";

const docs = path.resolve(import.meta.dirname, "../../../../docs");

test.each(Object.keys(TOPICS))(
  "idmint help %s prints a page of the docs as a terminal shows it",
  async (name) => {
    const { exitCode, out, err } = await idmint(["help", name]);
    expect([exitCode, err]).toEqual([0, ""]);
    expect(out.split("\n").length).toBeGreaterThan(8);
    // Nothing is left of Markdown, and nothing is cut off at the right but commands and words that are longer.
    expect(out).not.toMatch(/\]\(|^#|\*\*|^\||<!--|```/m);
    const wide = out.split("\n").filter((line) => line.length > 80 && !line.startsWith("    "));
    expect(wide).toEqual([]);
  },
);

test("every reason of an error has its chapter", async () => {
  for (const reason of Object.keys(CODE_OF_REASON)) {
    const { exitCode, out } = await idmint(["help", reason]);
    expect([exitCode, out.split("\n", 1)[0]]).toEqual([0, reason]);
    expect(out).toMatch(/Way out: /);
    expect(out.match(/Way out: /g)).toHaveLength(1);
  }
});

test("a topic has no name that a command has, and a name that is neither is refused", async () => {
  const { out } = await idmint(["help"]);
  for (const name of Object.keys(TOPICS)) expect(out).not.toMatch(new RegExp(`^ {2}${name} `, "m"));
  const unknown = await idmint(["help", "knids"]);
  expect([unknown.exitCode, unknown.out]).toEqual([2, ""]);
  expect((await idmint(["help", "NO_SUCH_REASON"])).exitCode).toBe(2);
  const topics = await idmint(["help", "topics"]);
  for (const name of Object.keys(TOPICS)) expect(topics.out).toContain(`  ${name} `);
});

test("no word of a page is lost", () => {
  for (const file of readdirSync(docs).filter((name) => name.endsWith(".md"))) {
    const markdown = readFileSync(path.join(docs, file), "utf8");
    const shown = plainMarkdown(markdown).toLowerCase();
    const prose = markdown
      .replaceAll(/```mermaid[^]*?```/g, "")
      .replaceAll(/<!--[^]*?-->/g, "")
      // Languages and marks of code, and the heads of tables: of two columns nobody needs them.
      .replaceAll(/^ *```.*/gm, "")
      .replaceAll(/^\|.*\n(?=\|[ :-]*-)/gm, "")
      .replaceAll(/!\[[^\]]*\]\([^)]*\)/g, "")
      .replaceAll(/\]\([^)\s]*\)/g, "");
    const words = prose.match(/[\p{L}]{4,}/gu) ?? [];
    expect(
      words.filter((word) => !shown.includes(word.toLowerCase())),
      file,
    ).toEqual([]);
  }
});

test("each kind of block keeps its shape", () => {
  const text = plainMarkdown(`# A title

A [link](page.md) and [another](https://example.com/) with \`code\`.

- one **bold** item
  that goes on
1. first

| a | b |
|---|---|
| \`x\` | y |

\`\`\`sh
  idmint   status
\`\`\`
`);
  expect(text).toBe(`A TITLE

A link and another (https://example.com/) with code.

- one bold item that goes on
1. first

  x
    y

      idmint   status
`);
});
