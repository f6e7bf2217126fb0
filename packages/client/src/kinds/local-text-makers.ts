import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { startupSnapshot } from "node:v8";
import { threadId } from "node:worker_threads";
import { IdmintError, ObjectIdMaker, UuidMaker } from "@idmint/core";
import * as library from "uuid";

const ports = { random: (count: number) => randomBytes(count), now: Date.now };

/** What makes ids that are text and are made here. */
export interface LocalTextMakers {
  readonly uuid: UuidMaker;
  readonly objectId: ObjectIdMaker;
}

let makers: LocalTextMakers | undefined;

/** The random parts that tell processes apart are drawn at the first id, not when the module is loaded. */
export function localTextMakers(): LocalTextMakers {
  if (makers !== undefined) return makers;
  if (startupSnapshot.isBuildingSnapshot()) {
    throw new IdmintError(
      "CLIENT_CLOSED",
      "ids cannot be made for a startup snapshot: every process would make the same ones",
    );
  }
  makers = {
    uuid: new UuidMaker(library, ports),
    objectId: new ObjectIdMaker(ports, machine(), process.pid),
  };
  return makers;
}

/** Threads of one process share the process number, so the machine's part includes the thread. */
function machine(): Uint8Array {
  const name = `${hostname()}\n${threadId}`;
  return createHash("sha256").update(name).digest().subarray(0, 3);
}
