// Runs before each test file, of which a worker runs many: chooses its door, and sees that it leaves nothing to the next one.
import { createHash } from "node:crypto";
import path from "node:path";
import { afterAll, expect, vi } from "vitest";
import { cleanUpAfterFile } from "./after-file.ts";
import { DEFAULT_DOOR, DOORS } from "./doors.ts";

const repository = path.resolve(import.meta.dirname, "../../..");

/**
 * Chooses the door of gRPC for the servers of each test file. TEST_DOOR=fast and TEST_DOOR=grpc-js choose one for all files.
 * With TEST_DOOR=odd and TEST_DOOR=even half of the files take the one and half the other, so that both words together are all
 * files on both. Files of the project `doors` take the other one.
 */
function doorOf(file: string): string {
  const { TEST_DOOR: chosen = "", TEST_OTHER_DOOR: other } = process.env;
  const digest = createHash("sha256").update(path.relative(repository, file)).digest();
  let at = (DOORS as readonly string[]).indexOf(chosen);
  if (at < 0) at = ((digest[0] ?? 0) + (chosen === "odd" ? 1 : 0)) % 2;
  if (other !== undefined) at = 1 - at;
  return DOORS[at] ?? "";
}

const door = doorOf(expect.getState().testPath ?? "");
// Servers have this one by themselves, and `idmint doctor` looks at the configuration of whoever sets an option.
if (door === DEFAULT_DOOR) delete process.env["IDMINT_GRPC_DOOR"];
else process.env["IDMINT_GRPC_DOOR"] = door;

/** What a file may change of its process, and another one would find. */
function processState(): ReadonlyMap<string, unknown> {
  const state = new Map<string, unknown>([["folder", process.cwd()]]);
  for (const [name, value] of Object.entries(process.env)) state.set(`variable ${name}`, value);
  for (const event of process.eventNames()) {
    // The end of the process comes once.
    if (event !== "exit") state.set(`listeners of ${String(event)}`, process.listenerCount(event));
  }
  for (const name of Object.getOwnPropertyNames(globalThis)) state.set(`globalThis.${name}`, true);
  state.set("Date.now", Date.now);
  state.set("Math.random", Math.random);
  return state;
}

const before = processState();

// It was registered first, so it runs after all hooks of the file.
afterAll(async () => {
  await cleanUpAfterFile();
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  // vitest.config.ts says whose files share a worker.
  if (process.env["TEST_SHARED"] === undefined) return;
  const after = processState();
  const names = new Set([...before.keys(), ...after.keys()]);
  const changed = [...names].filter((name) => before.get(name) !== after.get(name));
  expect(changed, "the file changed its process for the files after it").toEqual([]);
});
