import { createRequire } from "node:module";
import type * as Yaml from "yaml";

// The YAML parser takes megabytes, and most servers have no file to parse.
const require = createRequire(import.meta.url);

/** A text may have an error in each of its lines. */
const MAX_PLACES = 10;

/** What a text of YAML says; or what is wrong with it, which shows nothing of the text: there may be secrets in it. */
export type YamlReading = { readonly value: unknown } | { readonly fault: string };

/** Reads a text of YAML. `intAsBigInt`: integers past 2^53 keep the value that was written. */
export function yamlOf(
  text: string,
  options: { readonly intAsBigInt?: boolean } = {},
): YamlReading {
  const { parseDocument } = require("yaml") as typeof Yaml;
  const document = parseDocument(text, { uniqueKeys: true, ...options });
  if (document.errors.length > 0) return { fault: `is not YAML: ${placesOf(document.errors)}` };
  try {
    return { value: document.toJS({ maxAliasCount: 0 }) };
  } catch {
    // A few aliases of each other make a value of any size.
    return { fault: "must not have aliases (*name)" };
  }
}

/** What is wrong where. The parser's own texts show lines of the file. */
function placesOf(errors: readonly Yaml.YAMLParseError[]): string {
  const places = errors.slice(0, MAX_PLACES).map(({ code, linePos }) => {
    const { line = 1, col = 1 } = linePos?.[0] ?? {};
    return `${code} at line ${line}, column ${col}`;
  });
  const others = errors.length - places.length;
  return [...places, ...(others > 0 ? [`and ${others} more`] : [])].join("; ");
}
