import { readFileSync } from "node:fs";

let version: string | undefined;

/** The version of `idmint`, which carries the server: of a bundle the folder's own, of sources that of the package beside this one. */
export function serverVersion(): string {
  version ??= readVersion();
  return version;
}

function readVersion(): string {
  const isSource = import.meta.url.endsWith(".ts");
  const file = isSource ? "../../../cli/package.json" : "../../package.json";
  const about = JSON.parse(readFileSync(new URL(file, import.meta.url), "utf8")) as {
    version: string;
  };
  return about.version;
}
