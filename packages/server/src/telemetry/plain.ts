import { IdmintError } from "@idmint/core";
import type { ServerEvent } from "../service/events.ts";

/** The fields of an event as plain values. What a store or a network said has no stack: it is the same each time. */
export function plain(event: ServerEvent): Record<string, unknown> {
  return fieldsOf(event, false);
}

/** The same with all stacks, for the level debug. */
export function withStacks(event: ServerEvent): Record<string, unknown> {
  return fieldsOf(event, true);
}

function fieldsOf(event: ServerEvent, hasStacks: boolean): Record<string, unknown> {
  const facts = Object.entries(event).filter(([name]) => name !== "type");
  return Object.fromEntries(facts.map(([name, value]) => [name, plainValue(value, hasStacks)]));
}

function plainValue(value: unknown, hasStacks: boolean): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof IdmintError) {
    const { reason, message, cause } = value;
    if (cause === undefined) return { reason, message };
    const told = plainValue(cause, hasStacks || reason === "INTERNAL");
    return {
      reason,
      message,
      cause: hasStacks || reason === "INTERNAL" ? told : withoutStack(told),
    };
  }
  if (value instanceof Error)
    return { name: value.name, message: value.message, stack: value.stack };
  return value;
}

function withoutStack(told: unknown): unknown {
  if (typeof told !== "object" || told === null || !("stack" in told)) return told;
  const { stack: _, ...rest } = told;
  return rest;
}
