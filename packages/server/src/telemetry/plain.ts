import { IdmintError } from "@idmint/core";
import type { ServerEvent } from "../service/events.ts";

/** The fields of an event as plain values. */
export function plain(event: ServerEvent): Record<string, unknown> {
  const facts = Object.entries(event).filter(([name]) => name !== "type");
  return Object.fromEntries(facts.map(([name, value]) => [name, plainValue(value)]));
}

function plainValue(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof IdmintError) {
    const { reason, message, cause } = value;
    return { reason, message, ...(cause === undefined ? {} : { cause: plainValue(cause) }) };
  }
  if (value instanceof Error)
    return { name: value.name, message: value.message, stack: value.stack };
  return value;
}
