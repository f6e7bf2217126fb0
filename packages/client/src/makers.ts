import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { startupSnapshot } from "node:v8";
import { threadId } from "node:worker_threads";
import { IdmintError, ObjectIdMaker, UuidMaker } from "@idmint/core";
import * as library from "uuid";

const ports = { random: (count: number) => randomBytes(count), now: Date.now };

interface Makers {
  readonly uuid: UuidMaker;
  readonly objectId: ObjectIdMaker;
}

let made: Makers | undefined;

/** What the ids of this process are told apart by is drawn at the first id, not when the module is loaded. */
export function makers(): Makers {
  if (made !== undefined) return made;
  if (startupSnapshot.isBuildingSnapshot()) {
    throw new IdmintError(
      "CLIENT_CLOSED",
      "ids cannot be made for a startup snapshot: every process would make the same ones",
    );
  }
  made = {
    uuid: new UuidMaker(library, ports),
    objectId: new ObjectIdMaker(ports, machine(), process.pid),
  };
  return made;
}

/** Threads of one process have the same number, so the thread is told apart with the machine. */
function machine(): Uint8Array {
  const name = `${hostname()}\n${threadId}`;
  return createHash("sha256").update(name).digest().subarray(0, 3);
}
