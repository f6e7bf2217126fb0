import { writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { devServer } from "./dev-server.ts";
import { LEAF, SHOP, tinyid } from "./dumps.ts";
import { serve, temporaryFolder } from "./process.ts";
import { shell, snippets, words } from "./snippets.ts";
import { idmint } from "./support.ts";

const server = devServer();
const DOC = "docs/migrating.md";

/** The last id of each chapter, which is above all that the old source may have given out. */
const CHAPTERS = {
  Leaf: 2_001n,
  Tinyid: 300_001n,
  "uid-generator": 300_000_000_000_000_000n,
  CosId: 1_000_000n,
  "Auto-increment": 48_212n,
  UUIDs: 0n,
  "Proving it": 1_000_000n,
} as const;

test("every command of docs/migrating.md runs as printed, and no id is one of the old source", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const files = {
    "leaf.sql": LEAF,
    "tinyid-1.sql": tinyid(200_001),
    "tinyid-2.sql": tinyid(300_001),
    "shop.sql": SHOP,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  for (const [chapter, floor] of Object.entries(CHAPTERS)) {
    const lines = snippets(DOC, chapter, "sh").join("").trimEnd().split("\n");
    const ids: string[] = [];
    for (const line of lines) {
      const [command, ...args] = words(line);
      expect(command).toBe("idmint");
      const placed = args.map((word) => (word.endsWith(".sql") ? path.join(folder, word) : word));
      // oxlint-disable-next-line no-await-in-loop
      const { exitCode, out, err } = await idmint(placed, {
        env: { IDMINT_ADDRESS: server.grpcAddress },
      });
      expect(exitCode, `${line}: ${err}`).toBe(0);
      ids.push(...out.split("\n").filter((word) => /^\d+$/.test(word)));
    }
    if (chapter !== "UUIDs") expect(ids.length, chapter).toBeGreaterThan(0);
    for (const id of ids) expect(BigInt(id), chapter).toBeGreaterThan(floor);
  }
});

/** Follows a chapter as a stranger would: its first block starts a server, its second one is typed beside it. */
async function followed(chapter: string): Promise<{ out: string; httpAddress: string }> {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  writeFileSync(path.join(folder, "leaf.sql"), LEAF);
  writeFileSync(path.join(folder, "tinyid-1.sql"), tinyid(200_001));
  writeFileSync(path.join(folder, "tinyid-2.sql"), tinyid(300_001));
  const [begin = "", then = ""] = snippets(DOC, chapter, "sh");
  const [command, ...args] = words(begin.trimEnd());
  expect(command).toBe("idmint");
  const started = await serve(args, { cwd: folder });
  onTestFinished(async () => void (await started.stop()));
  const { grpcAddress, httpAddress } = started;
  const lines = then
    .replaceAll("127.0.0.1:7601", httpAddress)
    .replaceAll(/[\w-]+\.sql/g, (file) => path.join(folder, file));
  const { exitCode, out, err } = await shell(lines, { env: { IDMINT_ADDRESS: grpcAddress } });
  expect(exitCode, err).toBe(0);
  return { out, httpAddress };
}

/** As services call Leaf: they know its URL, and read a number. */
async function leafId(url: string, tag: string): Promise<bigint> {
  const response = await fetch(`${url}/api/segment/get/${tag}`);
  if (!response.ok) throw new Error(await response.text());
  return BigInt(await response.text());
}

test("a Leaf table is taken over, and a caller of Leaf gets another URL and nothing else", async () => {
  const { out, httpAddress } = await followed("Leaf's callers as they are");
  expect(out).toMatch(/^2002$/m);
  const url = `http://${httpAddress}`;
  expect(await leafId(url, "leaf-segment-test")).toBe(2_003n);
  expect(await leafId(url, "orders")).toBe(9_007_199_254_740_994n);
  await expect(leafId(url, "ghost")).rejects.toThrow("Result{id=-2, status=EXCEPTION}");
});

test("a Tinyid table is taken over, and its clients get another address and nothing else", async () => {
  const { out, httpAddress } = await followed("Tinyid's clients as they are");
  expect(out).toContain('{"data":[300002],"code":200,"message":""}');
  const [properties = ""] = snippets(DOC, "Tinyid's clients as they are", "properties");
  const token = /^tinyid\.token=(.*)$/m.exec(properties)?.[1];
  const path = `/tinyid/id/nextSegmentIdSimple?token=${token}&bizType=test`;
  let answer = "";
  while (answer === "") {
    // oxlint-disable-next-line no-await-in-loop
    answer = await (await fetch(`http://${httpAddress}${path}`, { method: "POST" })).text();
    // A server hears within a second of what was changed.
    // oxlint-disable-next-line no-await-in-loop
    if (answer === "") await sleep(50);
  }
  const [current = 0n, loading = 0n, max = 0n, delta, remainder] = answer.split(",").map(BigInt);
  expect([delta, remainder]).toEqual([1n, 0n]);
  expect(current).toBeGreaterThanOrEqual(300_002n);
  expect(loading - current).toBe((max - current) / 5n);
  const ghost = await fetch(`http://${httpAddress}${path.replace("=test", "=ghost")}`);
  expect([ghost.status, await ghost.text()]).toEqual([200, ""]);
});

test("the measurements of docs/performance.md run as printed", async () => {
  const lines = snippets("docs/performance.md", "Measuring it yourself", "sh").join("");
  for (const line of lines.trimEnd().split("\n")) {
    const [, ...args] = words(line);
    // oxlint-disable-next-line no-await-in-loop
    const { exitCode, out, err } = await idmint(args, {
      env: { IDMINT_ADDRESS: server.grpcAddress },
    });
    expect([exitCode, err], line).toEqual([0, ""]);
    expect(out).toMatch(/^repeated ids +0$|"mode":"stream".*"repeats":0/m);
  }
});
