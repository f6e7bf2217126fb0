import { invalidField } from "@idmint/core";

/** Values by their names, as forms and queries have them. */
export type Form = ReadonlyMap<string, string>;

/** Far above what any route takes; a query is bounded by the headers anyway. */
const MAX_FIELDS = 32;

/**
 * The fields of a query. One that is not encoded rightly, or comes twice, is refused: nobody knows what is meant. What is
 * wrong is told without the value, which may be a token.
 */
export function formOf(query: string): Form {
  const form = new Map<string, string>();
  for (const pair of query.split("&", MAX_FIELDS + 1)) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    const name = decoded(at < 0 ? pair : pair.slice(0, at));
    if (form.has(name)) throw invalidField(shown(name), "must be there once", "FIELD_CONFLICT");
    if (form.size === MAX_FIELDS) {
      throw invalidField("the query", `must have at most ${MAX_FIELDS} fields`);
    }
    form.set(name, at < 0 ? "" : decoded(pair.slice(at + 1), name));
  }
  return form;
}

/** A part of a path or query without its escapes; undefined: they are not UTF-8. */
export function unescaped(part: string): string | undefined {
  if (!part.includes("%")) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function decoded(part: string, name?: string): string {
  const text = unescaped(part.replaceAll("+", " "));
  if (text !== undefined) return text;
  const field = name === undefined ? "the query" : shown(name);
  throw invalidField(field, "has a % that begins no byte of UTF-8", "INVALID_FORMAT");
}

/** A name that a caller chose, short enough for a line. */
function shown(name: string): string {
  return name.slice(0, 64);
}
