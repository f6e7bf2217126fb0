/** A name whose value is another one after a change. Undefined: it had none. */
export interface Difference {
  readonly name: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Deeper objects are shown as JSON: nobody reads a longer name. */
const MAX_DEPTH = 3;

/**
 * What differed, as an event of the audit trail tells it in two JSON objects; empty where there was nothing. Undefined: they are
 * no JSON objects, so they are to be shown as they are.
 */
export function differencesOf(before: string, after: string): readonly Difference[] | undefined {
  const old = valuesOf(before);
  const now = valuesOf(after);
  if (old === undefined || now === undefined) return undefined;
  return [...new Set([...old.keys(), ...now.keys()])]
    .toSorted()
    .map((name) => ({ name, before: old.get(name), after: now.get(name) }))
    .filter((one) => one.before !== one.after);
}

/** A Map, since names come from outside: none of them is a property of anything. */
function valuesOf(text: string): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>();
  if (text === "") return values;
  const root = parsed(text);
  if (!isObject(root)) return undefined;
  const add = (object: object, prefix: string, depth: number): void => {
    for (const [key, value] of Object.entries(object) as [string, unknown][]) {
      const name = `${prefix}${key}`;
      const isNested = isObject(value) && Object.keys(value).length > 0 && depth < MAX_DEPTH;
      if (isNested) add(value, `${name}.`, depth + 1);
      else values.set(name, shown(value));
    }
  };
  add(root, "", 1);
  return values;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An empty text has to be seen, too. */
function shown(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}
