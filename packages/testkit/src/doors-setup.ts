// Chooses the door of gRPC for the servers of each test file. TEST_DOOR=fast and TEST_DOOR=grpc-js choose one for all files.
// With TEST_DOOR=odd and TEST_DOOR=even half of the files take the one and half the other, so that both words together are all
// files on both. Files of the project `doors` take the other one.
import { createHash } from "node:crypto";
import path from "node:path";
import { expect } from "vitest";
import { DEFAULT_DOOR, DOORS } from "./doors.ts";

const repository = path.resolve(import.meta.dirname, "../../..");

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
