import { invalidField } from "./errors.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** A name of a lock, an election, a signal or a queue. Without braces, so that all its keys fall into one hash slot. */
export function checkName(field: string, name: unknown): string {
  if (typeof name === "string" && NAME.test(name)) return name;
  throw invalidField(
    field,
    "must be 1 to 128 letters, digits, dots, underscores, colons and hyphens, and begin with a letter or digit",
  );
}

/** An option that is a whole number within bounds; `fallback` when it is not given. */
export function checkInteger(
  field: string,
  value: unknown,
  bounds: { readonly min: number; readonly max: number; readonly fallback: number },
): number {
  const { min, max, fallback } = bounds;
  if (value === undefined) return fallback;
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  const got = typeof value === "number" ? String(value) : typeof value;
  throw invalidField(field, `must be a whole number from ${min} to ${max}, got ${got}`);
}

/** Refuses an option that does not exist, which is mostly a misspelt one. */
export function checkKnown(field: string, options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw invalidField(`${field}.${name}`, `is not an option; there are ${known.join(", ")}`);
  }
}

/** What a signal or an element of a queue carries: text of at most so many bytes. */
export function checkData(data: unknown, maxBytes: number): string {
  if (typeof data !== "string") throw invalidField("data", "must be text");
  const bytes = Buffer.byteLength(data);
  if (bytes > maxBytes) {
    const text = `must be at most ${maxBytes} bytes, got ${bytes}; raise maxBytes, or send a reference`;
    throw invalidField("data", text);
  }
  // Lone surrogates would come out as another character than they went in.
  if (!data.isWellFormed()) throw invalidField("data", "must be well-formed Unicode");
  return data;
}
