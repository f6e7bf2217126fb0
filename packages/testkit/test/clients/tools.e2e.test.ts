// Tools that others made, against a real server: in plain text and over TLS. TEST_DOOR says on which door of gRPC.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { GenerateIdRequest } from "@idmint/proto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { framed, GRPC_HEADERS, h2loadProgram } from "../../bench/lib/h2load.ts";
import { killChildren } from "../../src/fleet/child.ts";
import { cacheOf, runLocked } from "../../src/prepared.ts";
import { isLong } from "../fleet-support.ts";
import { authority, ClientsServer, newFolder } from "./server.ts";

const STREAMS = 1_000;
const METHOD = "idmint.v1.IdService/GenerateId";
const root = path.resolve(import.meta.dirname, "../../../..");
const run = promisify(execFile);

afterAll(killChildren);

describe.each([
  ["in plain text", false],
  ["over TLS", true],
] as const)("%s", (_, isSecure) => {
  let port = 0;

  beforeAll(async () => {
    const server = await ClientsServer.start(isSecure);
    port = server.port;
    return () => server.close();
  });

  test("h2load: 1,000 streams of one connection", async () => {
    const { command, env } = h2loadProgram();
    const body = path.join(newFolder(), "body");
    writeFileSync(body, framed(GenerateIdRequest.encode({ tag: "demo", name: "" }).finish()));
    const count = isLong ? 200_000 : 10_000;
    const address = `${isSecure ? "https" : "http"}://localhost:${port}/${METHOD}`;
    const load = (calls: number, streams: number): Promise<{ stdout: string }> => {
      const amount = ["-n", String(calls), "-c", "1", "-m", String(streams)];
      return run(command, [...amount, ...GRPC_HEADERS, "-d", body, address], {
        env: { ...process.env, ...env },
      });
    };
    // A server that has just begun takes longer for a call than one that is not overloaded may.
    await load(STREAMS, 10);
    const { stdout } = await load(count, STREAMS);
    expect(stdout).toMatch(new RegExp(`${count} succeeded, 0 failed, 0 errored, 0 timeout`));
    // Each answer is a message with an id: its prefix and at least four bytes.
    const [, bytes] = /\((\d+)\) data$/m.exec(stdout) ?? [];
    expect(Number(bytes)).toBeGreaterThanOrEqual(count * 9);
  });

  test.runIf(isLong)("grpcurl, by reflection", { timeout: 600_000 }, async () => {
    const grpcurl = goProgram("github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3");
    const how = isSecure ? ["-cacert", authority] : ["-plaintext"];
    const call = (...more: readonly string[]): Promise<{ stdout: string }> =>
      run(grpcurl, [...how, "-max-time", "30", ...more]);
    const at = `localhost:${port}`;
    expect((await call(at, "list")).stdout).toContain("idmint.v1.IdService");
    const large = ["-H", `x-large: ${"x".repeat(7_000)}`];
    const { stdout } = await call(...large, "-d", '{"tag":"demo"}', at, METHOD);
    expect(Number((JSON.parse(stdout) as { id: string }).id)).toBeGreaterThan(0);
    await expect(call("-d", '{"tag":"ghost"}', at, METHOD)).rejects.toMatchObject({
      stderr: expect.stringContaining("NotFound") as unknown,
    });
  });

  test.runIf(isLong)("ghz: many connections, with gzip", { timeout: 600_000 }, async () => {
    const ghz = goProgram("github.com/bojand/ghz/cmd/ghz@v0.121.0");
    const how = isSecure ? ["--cacert", authority] : ["--insecure"];
    const load = ["-n", "20000", "-c", "400", "--connections", "8", "--enable-compression"];
    const call = ["--call", METHOD.replace("/", "."), "-d", '{"tag":"demo"}', "-O", "json"];
    const { stdout } = await run(ghz, [...how, ...load, ...call, `localhost:${port}`], {
      maxBuffer: 2 ** 28,
    });
    const { statusCodeDistribution } = JSON.parse(stdout) as Record<string, unknown>;
    expect(statusCodeDistribution).toEqual({ OK: 20_000 });
  });

  test.runIf(isLong)("buf curl --protocol grpc", { timeout: 120_000 }, async () => {
    const how = isSecure ? ["--cacert", authority] : ["--http2-prior-knowledge"];
    const { stdout } = await run(path.join(root, "node_modules/.bin/buf"), [
      "curl",
      "--protocol",
      "grpc",
      ...how,
      "-d",
      '{"tag":"demo"}',
      `${isSecure ? "https" : "http"}://localhost:${port}/${METHOD}`,
    ]);
    expect(Number((JSON.parse(stdout) as { id: string }).id)).toBeGreaterThan(0);
  });
});

/** A program of Go's, built once. */
function goProgram(from: string): string {
  const [place = ""] = from.split("@");
  const cache = cacheOf("clients");
  const file = path.join(cache, path.basename(place));
  const why = runLocked(cache, `[ -x '${file}' ] || GOBIN='${cache}' go install '${from}'`);
  if (why !== undefined)
    throw new Error(`no ${from} for the tests: install Go 1.24 or newer (${why})`);
  return file;
}
