import { readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { cores } from "./cpus.ts";

/** What was measured on, as far as it matters to others: no names, no addresses. */
export function machineText(): string {
  const [first] = cpus();
  const model = first?.model.replaceAll(/\s+/g, " ").trim() ?? "unknown processor";
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  const pinned = cores.arePinned
    ? "server and generator pinned to different ones"
    : "nothing pinned";
  return `${cpus().length} cores (${model}; ${pinned}), ${gigabytes} GiB of memory, ${systemText()}, Node.js ${process.versions.node} (V8 ${process.versions.v8})`;
}

function systemText(): string {
  const kernel = release().split(/[-+]/)[0] ?? "";
  try {
    const name = /^PRETTY_NAME="(.+)"$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
    return `${name ?? "Linux"}, kernel ${kernel}`;
  } catch {
    return `Linux, kernel ${kernel}`;
  }
}
