import { createHash } from "node:crypto";
import { ObjectIdMaker, UuidMaker } from "@idmint/core";
import type { Config } from "../config/table.ts";
import type { TextMakers } from "../service/kinds/text-source.ts";
import type { TextPorts } from "../service/issue/tag-text.ts";
import type { System } from "../service/system.ts";

/** Makes what issues the ids of kinds uuid and object_id in this process. */
export function createTextMakers({ wallClock, randomBytes, uuids, process }: System): TextMakers {
  const ports = { random: randomBytes, now: wallClock };
  const machine = createHash("sha256").update(process.hostname).digest();
  return {
    uuid: new UuidMaker(uuids, ports),
    objectId: new ObjectIdMaker(ports, machine, process.pid),
  };
}

/**
 * The keys of unguessable ids. Rejects with INVALID_ARGUMENT when a configured file cannot be used. Without one, the cipher is
 * not loaded.
 */
export async function openKeys({ unguessableKeys }: Config): Promise<TextPorts["keys"]> {
  if (unguessableKeys.size === 0) return new Map();
  const { readKeys } = await import("../unguessable/keys.ts");
  return readKeys(unguessableKeys);
}
