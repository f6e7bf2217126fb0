import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { devServer } from "./dev-server.ts";
import { root, shell, snippet } from "./snippets.ts";

const server = devServer((folder) => {
  const keys = [1, 2].map((number) => {
    const file = path.join(folder, `key-${number}`);
    writeFileSync(file, `${String(number).repeat(64)}\n`);
    chmodSync(file, 0o400);
    return `${number}=${file}`;
  });
  return { IDMINT_UNGUESSABLE_KEYS: keys.join(",") };
});

async function run(lines: string): Promise<string> {
  const { exitCode, out, err } = await shell(lines, {
    env: { IDMINT_ADDRESS: server.grpcAddress },
  });
  expect([exitCode, err.replace(/^idmint: dry run, .*\n/, "")]).toEqual([0, ""]);
  return out;
}

/** The commands that stand within the sentences of a document, in their order. */
function commandsIn(file: string): readonly string[] {
  const text = readFileSync(path.join(root, file), "utf8");
  return [...text.matchAll(/`(idmint tag [^`]+)`/g)].map(([, command]) => command ?? "");
}

test("the command lines of docs/formats.md run as printed", async () => {
  const out = await run(snippet("docs/formats.md", "Ids as text", "sh"));
  expect(out).toMatch(/^format +INV\{id:8\}\{luhn\}$/m);
  expect(out).toMatch(/^text length +12\nexample +INV000000018\nexample +INV999999998\n/m);
  expect(out).toMatch(/^INV000000018\nnumber {2}1\n/m);
});

test("the payment serials of docs/formats.md are made, and their template is the SDK's", async () => {
  const out = await run(snippet("docs/formats.md", "Payment serials", "sh"));
  const template = "101{yyyyMMddHHmmssSSS}{machine:2}{seq:4}";
  expect(out).toContain(template);
  expect(out).toMatch(/^101\d{17}\d{2}\d{4}$/m);
  const program = await shell("npx pnpm@10 exec node -C idmint-source --input-type=module -", {
    input: snippet("docs/formats.md", "Payment serials", "js"),
  });
  expect([program.exitCode, program.err, program.out]).toEqual([0, "", `${template}\n`]);
});

test("the commands of docs/unguessable.md make a tag with a key, and change the key", async () => {
  const [create = "", update = "", ...others] = commandsIn("docs/unguessable.md");
  expect(others).toEqual([]);
  expect(await run(`${create}\nidmint id next coupons`)).toMatch(/^1\d{8}$/m);
  expect(await run(`${update}\nidmint id next coupons`)).toMatch(/^2\d{8}$/m);
});

test("the command of docs/uuid.md makes a tag of UUIDs", async () => {
  const [create = "", ...others] = commandsIn("docs/uuid.md");
  expect(others).toEqual([]);
  expect(await run(`${create}\nidmint id next sessions`)).toMatch(/^[\da-f-]{14}7[\da-f-]{21}$/m);
});
