import { readFileSync } from "node:fs";

/** The version of this package. */
export function cliVersion(): string {
  // This file is two folders below package.json, in src/ and in dist/.
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
