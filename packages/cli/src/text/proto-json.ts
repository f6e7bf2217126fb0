import type { Duration } from "@idmint/core";

/**
 * A message as proto3 JSON with every field present, as `grpcurl -emit-defaults` has it: a script that reads a floor of 0
 * must not find that the floor is missing. A message that is absent is null.
 */
export function protoJson<T extends object>(
  type: { toJSON(message: T): unknown },
  message: T,
): Readonly<Record<string, unknown>> {
  return completed(type.toJSON(message), message) as Readonly<Record<string, unknown>>;
}

/**
 * The JSON of generated code, completed: what it leaves out is added, and durations are written as the standard has
 * them.
 */
function completed(json: unknown, message: unknown): unknown {
  if (message === undefined) return null;
  if (Array.isArray(message)) {
    const items = (json ?? []) as readonly unknown[];
    return message.map((item, at) => completed(items[at], item));
  }
  if (typeof message !== "object" || message === null || message instanceof Date) return json;
  if (isDuration(message)) return durationText(message);
  const fields = json as Readonly<Record<string, unknown>>;
  const entries = Object.entries(message).map(([name, value]: [string, unknown]) => {
    const key = isChoice(value) ? value.$case : name;
    return [key, completed(fields[key], isChoice(value) ? value.value : value)];
  });
  return Object.fromEntries(entries);
}

function isDuration(message: object): message is Duration {
  return "seconds" in message && "nanos" in message;
}

/** The field of a oneof. */
function isChoice(value: unknown): value is { readonly $case: string; readonly value: unknown } {
  return typeof value === "object" && value !== null && "$case" in value;
}

function durationText({ seconds, nanos }: Duration): string {
  // 0, 3, 6 or 9 digits, as few as state it exactly.
  const digits = String(nanos)
    .padStart(9, "0")
    .replace(/(?:000){1,3}$/, "");
  return `${seconds}${digits === "" ? "" : `.${digits}`}s`;
}
