// What the console costs whoever opens it.
import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const built = path.resolve(import.meta.dirname, "../../server/console");
const MAX_BYTES = 80_000;

test("everything together is at most 80 KB, compressed by gzip", () => {
  const files = readdirSync(built, { recursive: true, encoding: "utf8" });
  const sizes = files
    .filter((file) => file.endsWith(".gz") && !file.startsWith("third-party"))
    .map((file) => [file, statSync(path.join(built, file)).size] as const);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  console.log(`the console is ${total} bytes: ${sizes.map((each) => each.join(" ")).join(", ")}`);
  expect(sizes.some(([file]) => file.endsWith(".js.gz"))).toBe(true);
  expect(sizes.some(([file]) => file.endsWith(".html.gz"))).toBe(true);
  expect(total).toBeLessThanOrEqual(MAX_BYTES);
});
