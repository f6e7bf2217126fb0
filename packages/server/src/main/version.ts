import { readFileSync } from "node:fs";

/** The version of this package. */
export function serverVersion(): string {
  // The path is the same from src/main and from dist/main.
  const file = new URL("../../package.json", import.meta.url);
  const { version } = JSON.parse(readFileSync(file, "utf8")) as { version: string };
  return version;
}
