// A server of its own, whose wall clock is set back while a call waits.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { GenerateIdRequest } from "@idmint/proto";
import { FakeWallClock } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { framed, grpcStatus, send, session } from "./wire.ts";

const HOUR_MS = 3_600_000;
/** Of a call; the clock is set within it. */
const TIMEOUT_MS = 1_500;
const SET_AFTER_MS = 300;

test("a call ends at its deadline though somebody sets the wall clock back by an hour", async () => {
  const clock = new FakeWallClock(0);
  onTestFinished(() => clock[Symbol.dispose]());
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-wall-clock-"));
  const main = path.join(import.meta.dirname, "../serve-child.ts");
  const child = spawn(process.execPath, ["-C", "idmint-source", main, folder], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], TEST_DOOR: "fast", ...clock.env },
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
    rmSync(folder, { recursive: true, force: true });
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const began = performance.now();
  setTimeout(() => clock.set(-HOUR_MS), SET_AFTER_MS);
  // Its handler never answers.
  const never = GenerateIdRequest.encode({ tag: "never", name: "" }).finish();
  const ended = await send(session(String(line).trim()), {
    headers: { "grpc-timeout": `${TIMEOUT_MS}m` },
    parts: [framed(never)],
  });
  // Otherwise the test itself gives the call up, after 20 s and without a status.
  expect(grpcStatus(ended)).toBe("4");
  expect(performance.now() - began).toBeGreaterThan(TIMEOUT_MS - 100);
});
