// h2spec, which knows what RFC 9113 (as 7540) and RFC 7541 ask of a server, against a real one.
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { startTest } from "../support.ts";

const H2SPEC = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";
const CACHE = path.resolve(import.meta.dirname, "../../../../node_modules/.cache/h2spec");
const BUILD_TIMEOUT_MS = 170_000;
/** How long h2spec waits for one frame. A machine that does much else may need it. */
const PATIENCE_S = 5;
/** Cases that must be there, so that none goes missing unseen. */
const LEAST_CASES = 145;

/** Cases that may fail, each with the sentence that allows it. */
const EXCEPTIONS: Readonly<Record<string, string>> = {};

interface Case {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly text: string;
}

/** h2spec, installed once by Go. */
function h2spec(): string {
  const program = path.join(CACHE, "h2spec");
  if (existsSync(program)) return program;
  if (spawnSync("go", ["version"]).status !== 0) {
    throw new Error("no Go for the tests: install Go 1.26 or newer");
  }
  const env = { ...process.env, GOBIN: CACHE, GOFLAGS: "-mod=mod" };
  const { status, stderr } = spawnSync("go", ["install", H2SPEC], {
    env,
    timeout: BUILD_TIMEOUT_MS,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`Go could not build h2spec:\n${stderr}`);
  return program;
}

/** The cases of a report in JUnit's form. */
function casesOf(xml: string): Case[] {
  const found = xml.matchAll(
    /<testcase package="([^"]*)" classname="([^"]*)"[^>]*>(.*?)<\/testcase>/gs,
  );
  return [...found].map(([, section = "", name = "", text = ""]) => ({
    name: `${section}: ${name}`,
    outcome: /<(?:failure|error)/.test(text)
      ? "failed"
      : text.includes("<skipped")
        ? "skipped"
        : "passed",
    text,
  }));
}

async function run(port: string, specs: readonly string[], report: string): Promise<Case[]> {
  const args = [
    ...specs,
    "-h",
    "127.0.0.1",
    "-p",
    port,
    "-o",
    String(PATIENCE_S),
    "-j",
    report,
    "-S",
  ];
  // It exits with 1 when a case fails, which the report tells better.
  await promisify(execFile)(h2spec(), args).catch(() => undefined);
  return casesOf(readFileSync(report, "utf8"));
}

test("every case of h2spec passes", async () => {
  const it = await startTest({ flags: { "grpc-door": "fast" } });
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-h2spec-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [, port = ""] = it.server.grpcAddress.split(":");
  const cases = await run(port, ["generic", "http2", "hpack"], path.join(folder, "all.xml"));
  expect(cases.length).toBeGreaterThanOrEqual(LEAST_CASES);
  const failed = cases.filter(({ outcome, name }) => outcome !== "passed" && !(name in EXCEPTIONS));
  expect(failed).toEqual([]);
  expect(it.events.filter(({ type }) => type === "internal-error")).toEqual([]);
});
