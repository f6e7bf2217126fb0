import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { ObjectIdMaker, UuidMaker } from "@idmint/core";
import { zoneOffsets } from "@idmint/core/server";
import * as library from "uuid";
import type { Config } from "../config/table.ts";
import type { TextMakers } from "../service/kinds/text-source.ts";
import type { TextPorts } from "../service/issue/tag-text.ts";
import { readKeys } from "../unguessable/keys.ts";
import type { System } from "../service/system.ts";

/** Makes what issues the ids of kinds uuid and object_id in this process. */
export function createTextMakers({ wallClock }: System): TextMakers {
  const ports = { random: (count: number) => randomBytes(count), now: wallClock };
  const machine = createHash("sha256").update(hostname()).digest();
  return {
    uuid: new UuidMaker(library, ports),
    objectId: new ObjectIdMaker(ports, machine, process.pid),
  };
}

/**
 * Makes what writes ids as text: time zones and keys. Throws INVALID_ARGUMENT when a configured key file cannot be
 * used.
 */
export function createTextPorts(config: Config): TextPorts {
  const keys = readKeys(config.unguessableKeys);
  return { keys, offsetAt: zoneOffsets() };
}
