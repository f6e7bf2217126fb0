import { parseArgs } from "node:util";

/** A line of `docker run` or `docker exec`, taken apart. */
export interface DockerLine {
  readonly env: Readonly<Record<string, string>>;
  /** Where volumes are mounted. */
  readonly volumes: readonly string[];
  /** host:port:port */
  readonly ports: readonly string[];
  readonly isConfined: boolean;
  /** What follows the image or the container: words for the entrypoint, or for `exec` the program and its words. */
  readonly words: readonly string[];
}

/** Refuses flags that nobody has looked at. */
export function dockerLine(line: string): DockerLine {
  const [docker, command, ...args] = line.trim().split(/\s+/);
  if (docker !== "docker" || (command !== "run" && command !== "exec")) throw new Error(line);
  const list = { type: "string" as const, multiple: true as const };
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      rm: { type: "boolean" },
      detach: { type: "boolean", short: "d" },
      name: { type: "string" },
      env: { ...list, short: "e" },
      volume: { ...list, short: "v" },
      publish: { ...list, short: "p" },
      "read-only": { type: "boolean" },
      "cap-drop": list,
      "security-opt": list,
    },
  });
  const pairs = (values.env ?? []).map((pair) => pair.split(/=(.*)/s, 2) as [string, string]);
  return {
    env: Object.fromEntries(pairs),
    volumes: (values.volume ?? []).map((volume) => volume.split(":")[1] ?? ""),
    ports: values.publish ?? [],
    isConfined:
      values["read-only"] === true &&
      values["cap-drop"]?.includes("ALL") === true &&
      values["security-opt"]?.includes("no-new-privileges") === true,
    words: positionals.slice(1),
  };
}
