import { createRequire } from "node:module";
import type * as Yaml from "yaml";

// The YAML parser takes megabytes, and most servers have no file to parse.
const require = createRequire(import.meta.url);

/** What a text of YAML says; or what is wrong with it, which shows nothing of the text: there may be secrets in it. */
export type YamlReading = { readonly value: unknown } | { readonly fault: string };

/** Reads a text of YAML. `intAsBigInt`: integers past 2^53 keep the value that was written. */
export function yamlOf(
  text: string,
  options: { readonly intAsBigInt?: boolean } = {},
): YamlReading {
  const { parseDocument } = require("yaml") as typeof Yaml;
  const document = parseDocument(text, { uniqueKeys: true, ...options });
  const [error] = document.errors;
  if (error !== undefined) {
    // The parser's own text shows lines of the file.
    const { line = 1, col = 1 } = error.linePos?.[0] ?? {};
    return { fault: `is not YAML: ${error.code} at line ${line}, column ${col}` };
  }
  try {
    return { value: document.toJS({ maxAliasCount: 0 }) };
  } catch {
    // A few aliases of each other make a value of any size.
    return { fault: "must not have aliases (*name)" };
  }
}
