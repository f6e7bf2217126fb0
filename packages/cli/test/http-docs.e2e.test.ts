// The lines of docs/http.md, as printed, against a server at another address.
import { readFileSync } from "node:fs";
import path from "node:path";
import { CODE_OF_REASON } from "@idmint/core";
import { expect, test } from "vitest";
import { devServer } from "./dev-server.ts";
import { root, shell, snippet, snippets } from "./snippets.ts";

const page = "docs/http.md";
const server = devServer();

async function run(lines: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const here = lines.replaceAll("127.0.0.1:7601", server.httpAddress);
  const { exitCode, out, err } = await shell(here.replaceAll("curl ", "curl -sS "));
  expect([exitCode, err]).toEqual([0, ""]);
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("curl mints with one line, makes a tag and reads it", async () => {
  const [first = ""] = snippets(page, "Calls over HTTP", "sh");
  expect(await run(first)).toMatchObject([{ id: "1" }]);
  const [ids, made, read] = await run(snippet(page, "Requests", "sh"));
  expect(ids).toMatchObject({ segments: [{ base: "2", count: 3 }] });
  expect(made).toMatchObject({ tag: { name: "bills" } });
  expect(read).toEqual(made);
});

test("the table of codes has every code that there is", () => {
  const text = readFileSync(path.join(root, page), "utf8");
  const listed = [...text.matchAll(/`([a-z_]+)`(?=[^|]*\| [45]\d\d)/g)].map(([, code]) => code);
  const codes = new Set(Object.values(CODE_OF_REASON).map((code) => code.toLowerCase()));
  // Nobody is there to hear it.
  codes.delete("cancelled");
  expect(new Set(listed)).toEqual(codes);
});
