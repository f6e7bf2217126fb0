import { readFileSync } from "node:fs";
import { closest, distance } from "fastest-levenshtein";
import { envOf, flagOf, type Option } from "./option.ts";
import { yamlOf } from "./yaml.ts";

/** A value as it was written, and where it was written. */
export interface Written {
  readonly text: string;
  /** Named in errors: a variable, a flag, or a place in the file. */
  readonly source: string;
}

/** The values of one source, by key, and the faults of the source itself. */
export interface SourceReading {
  readonly values: ReadonlyMap<string, Written>;
  readonly faults: readonly { readonly source: string; readonly fault: string }[];
}

type AnyOption = Pick<Option<unknown>, "key" | "isSecret" | "isNotInFile">;

/** Kubernetes sets these for a Service called idmint. They are not options, and not mistakes either. */
const KUBERNETES = /^IDMINT_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)/;
const MAX_FILE_BYTES = 1_024 * 1_024;

/** Reads IDMINT_… variables. `others` have the same prefix but are not options of the server. */
export function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  options: readonly AnyOption[],
  others: readonly string[],
): SourceReading {
  const values = new Map<string, Written>();
  const faults: { source: string; fault: string }[] = [];
  const keys = new Map<string, { readonly option: AnyOption; readonly isFile: boolean }>();
  for (const option of options) {
    keys.set(envOf(option), { option, isFile: false });
    if (option.isSecret === true) keys.set(`${envOf(option)}_FILE`, { option, isFile: true });
  }
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || !name.startsWith("IDMINT_")) continue;
    if (KUBERNETES.test(name) || others.includes(name)) continue;
    const known = keys.get(name);
    if (known === undefined) {
      faults.push({ source: name, fault: `is not an option${suggestion(name, [...keys.keys()])}` });
      continue;
    }
    const { key } = known.option;
    if (values.has(key)) {
      faults.push({
        source: name,
        fault: `and ${values.get(key)?.source} are both set; set one of them`,
      });
    } else if (known.isFile) {
      const read = readText(value);
      if (read.text === undefined) faults.push({ source: name, fault: read.fault });
      // Editors add a newline at the end of a file; it is not part of the secret.
      else values.set(key, { text: read.text.replace(/\r?\n$/, ""), source: name });
    } else {
      values.set(key, { text: value, source: name });
    }
  }
  return { values, faults };
}

/** Reads parsed flags, by name without dashes. */
export function readFlags(
  flags: Readonly<Record<string, string | boolean | readonly string[] | undefined>>,
  options: readonly AnyOption[],
): SourceReading {
  const values = new Map<string, Written>();
  const faults: { source: string; fault: string }[] = [];
  const keys = new Map<string, string>();
  for (const option of options) {
    const name = flagOf(option);
    if (name !== undefined) keys.set(name, option.key);
  }
  for (const [name, value] of Object.entries(flags)) {
    if (value === undefined) continue;
    const key = keys.get(name);
    const source = `--${name}`;
    if (key === undefined) {
      const known = [...keys.keys()].map((each) => `--${each}`);
      faults.push({ source, fault: `is not an option${suggestion(source, known)}` });
    } else {
      values.set(key, { text: String(value), source });
    }
  }
  return { values, faults };
}

/** Reads a YAML file: one map for each level of a key, then a scalar or a list of scalars. */
export function readYaml(path: string, options: readonly AnyOption[]): SourceReading {
  const values = new Map<string, Written>();
  const faults: { source: string; fault: string }[] = [];
  const read = readText(path);
  if (read.text === undefined) return { values, faults: [{ source: path, fault: read.fault }] };
  const yaml = yamlOf(read.text, { intAsBigInt: true });
  if ("fault" in yaml) return { values, faults: [{ source: path, fault: yaml.fault }] };
  const keys = options.filter((option) => option.isNotInFile !== true).map((option) => option.key);
  const walk = (node: unknown, at: string): void => {
    const source = `${path}: ${at}`;
    if (keys.includes(at)) {
      const written = scalarText(node);
      if (written === undefined) faults.push({ source, fault: "must be a value, not a map" });
      else values.set(at, { text: written, source });
    } else if (isMap(node) && (at === "" || keys.some((key) => key.startsWith(`${at}.`)))) {
      for (const [name, child] of Object.entries(node))
        walk(child, at === "" ? name : `${at}.${name}`);
    } else if (at !== "" || node !== null) {
      faults.push({ source, fault: `is not an option${suggestion(at, keys)}` });
    }
  };
  walk(yaml.value, "");
  return { values, faults };
}

function scalarText(node: unknown): string | undefined {
  if (Array.isArray(node)) {
    const parts = node.map(scalarText);
    return parts.every((part) => part !== undefined) ? parts.join(",") : undefined;
  }
  if (typeof node === "string") return node;
  if (typeof node === "number" || typeof node === "bigint" || typeof node === "boolean") {
    return String(node);
  }
  return node === null ? "" : undefined;
}

function isMap(node: unknown): node is Record<string, unknown> {
  return typeof node === "object" && node !== null && !Array.isArray(node);
}

function readText(path: string): { text: string } | { text: undefined; fault: string } {
  try {
    const text = readFileSync(path, "utf8");
    if (text.length <= MAX_FILE_BYTES) return { text };
    return { text: undefined, fault: "names a file of more than 1 MiB" };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    return { text: undefined, fault: `names a file that cannot be read (${code})` };
  }
}

function suggestion(name: string, known: readonly string[]): string {
  const best = closest(name, [...known]);
  return distance(name, best) <= Math.max(3, name.length / 3) ? `; did you mean ${best}?` : "";
}
