import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

test("a server that exports nothing loads no module of OpenTelemetry until somebody scrapes it", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-modules-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { stdout } = await promisify(execFile)(process.execPath, [
    "-C",
    "idmint-source",
    path.join(import.meta.dirname, "modules-child.ts"),
    `store-url=sqlite:${path.join(folder, "idmint.db")}`,
    "grpc-address=127.0.0.1:0",
    "http-address=127.0.0.1:0",
    "log-level=silent",
  ]);
  const { atStart, status, later } = JSON.parse(stdout) as {
    atStart: string[];
    status: number;
    later: number;
  };
  expect(atStart).toEqual([]);
  expect(status).toBe(200);
  // So the child would have seen them.
  expect(later).toBeGreaterThan(5);
});
