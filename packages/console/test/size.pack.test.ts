// What the console costs whoever opens it.
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const built = path.resolve(import.meta.dirname, "../../server/console");
/** What the first view loads: the frame, the overview and its charts. */
const MAX_FIRST_BYTES = 80_000;
/** With the pages that are loaded when somebody goes there. */
const MAX_BYTES = 125_000;

test("the first view is at most 80 KB, and everything together 125 KB, compressed by gzip", () => {
  const sizes = readdirSync(built, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".gz") && !file.startsWith("third-party"))
    .map((file) => [file, statSync(path.join(built, file)).size] as const);
  const index = readFileSync(path.join(built, "index.html"), "utf8");
  const first = sizes.filter(
    ([file]) => file === "index.html.gz" || index.includes(`/console/${file.replace(".gz", "")}"`),
  );
  const [firstBytes, bytes] = [first, sizes].map((files) =>
    files.reduce((sum, [, size]) => sum + size, 0),
  );
  const listed = sizes.map((each) => each.join(" ")).join(", ");
  console.log(`the first view is ${firstBytes} bytes, all ${bytes}: ${listed}`);
  expect(first.some(([file]) => file.endsWith(".js.gz"))).toBe(true);
  expect(first.some(([file]) => file.endsWith(".css.gz"))).toBe(true);
  expect(first.some(([file]) => file.endsWith(".html.gz"))).toBe(true);
  expect(firstBytes).toBeLessThanOrEqual(MAX_FIRST_BYTES);
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
});
