import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

const script = path.resolve(import.meta.dirname, "../../../../scripts/docs.ts");

test("docs, dashboards and the chart say what the tables say that they are made from", () => {
  const words = ["-C", "idmint-source", script, "--check"];
  const { status, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});
