import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { devServer } from "./dev-server.ts";
import { LEAF, SHOP, tinyid } from "./dumps.ts";
import { temporaryFolder } from "./process.ts";
import { snippets, words } from "./snippets.ts";
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
