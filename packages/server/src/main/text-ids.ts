import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { ObjectIdMaker, UuidMaker } from "@idmint/core";
import * as library from "uuid";
import type { Config } from "../config/table.ts";
import type { TextMakers } from "../service/text-source.ts";
import type { TextPorts } from "../service/tag-text.ts";
import { readKeys } from "../unguessable/keys.ts";
import type { System } from "./system.ts";

/** Zones that are looked up often at once; each tag with a named zone has one. */
const MAX_ZONES = 256;

/** What makes the ids of kinds uuid and object_id in this process. */
export function createTextMakers({ wallClock }: System): TextMakers {
  const ports = { random: (count: number) => randomBytes(count), now: wallClock };
  const machine = createHash("sha256").update(hostname()).digest();
  return {
    uuid: new UuidMaker(library, ports),
    objectId: new ObjectIdMaker(ports, machine, process.pid),
  };
}

/** What ids are written with. INVALID_ARGUMENT when a key file of the configuration cannot be used. */
export function createTextPorts(config: Config): TextPorts {
  const keys = readKeys(config.unguessableKeys);
  const zones = new Map<string, Intl.DateTimeFormat>();
  const zoneOf = (name: string): Intl.DateTimeFormat => {
    const known = zones.get(name);
    if (known !== undefined) return known;
    if (zones.size >= MAX_ZONES) zones.clear();
    const zone = new Intl.DateTimeFormat("en", { timeZone: name, timeZoneName: "longOffset" });
    zones.set(name, zone);
    return zone;
  };
  return { keys, offsetAt: (name, ms) => offsetAt(() => zoneOf(name), ms) };
}

function offsetAt(zone: () => Intl.DateTimeFormat, ms: number): number | undefined {
  try {
    const parts = zone().formatToParts(ms);
    const name = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign, hours = "0", minutes = "0", seconds = "0"] =
      /^GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/.exec(name) ?? [];
    const offset = Number(hours) * 60 + Number(minutes) + Number(seconds) / 60;
    return sign === "-" ? -offset : offset;
  } catch {
    return undefined;
  }
}
