// h2spec, which knows what RFC 9113 (as 7540) and RFC 7541 ask of a server, against a real one.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { goProgram } from "../../src/deploy/tools.ts";
import { startFleet } from "../fleet-support.ts";

const H2SPEC = "github.com/summerwind/h2spec/cmd/h2spec";
const VERSION = "v2.2.1+incompatible";
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
  await promisify(execFile)(goProgram("h2spec", H2SPEC, VERSION), args).catch(() => undefined);
  return casesOf(readFileSync(report, "utf8"));
}

test("every case of h2spec passes", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-h2spec-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const fleet = await startFleet({
    servers: 1,
    storeUrl: `sqlite:${path.join(folder, "idmint.db")}`,
    env: { IDMINT_GRPC_DOOR: "fast" },
  });
  const [server] = fleet.servers;
  const port = server?.address.split(":")[1] ?? "";
  const cases = await run(port, ["generic", "http2", "hpack"], path.join(folder, "all.xml"));
  expect(cases.length).toBeGreaterThanOrEqual(LEAST_CASES);
  const failed = cases.filter(({ outcome, name }) => outcome !== "passed" && !(name in EXCEPTIONS));
  expect(failed).toEqual([]);
  expect(server?.describe()).not.toContain("unexpected error");
});
