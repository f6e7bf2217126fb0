import { readFileSync } from "node:fs";
import path from "node:path";

/** Inputs that are kept: of findings, and of forms worth being tried each time. Lines that begin with # say why. */
export function corpusOf(target: string): readonly string[] {
  // Doors have one of all.
  const name = target.replace(/-(?:fast|grpc-js|js)$/, "");
  const file = path.join(import.meta.dirname, "corpus", `${name}.txt`);
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}
