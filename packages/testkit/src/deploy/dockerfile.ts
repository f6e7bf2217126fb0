// What an engine is told by an image, read from the Dockerfile itself.
import { readFileSync } from "node:fs";
import { DockerfileParser, type Instruction } from "dockerfile-ast";

/** The settings of the last stage. */
export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  readonly uid: number;
  readonly gid: number;
  readonly workdir: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
  readonly stopSignal: string;
}

export function imageConfig(file: string): ImageConfig {
  const instructions = DockerfileParser.parse(readFileSync(file, "utf8")).getInstructions();
  const last = instructions.map((each) => each.getKeyword()).lastIndexOf("FROM");
  const of = (keyword: string): readonly Instruction[] =>
    instructions.slice(last).filter((each) => each.getKeyword() === keyword);
  const words = (keyword: string): readonly string[] =>
    of(keyword)
      .at(-1)
      ?.getArguments()
      .map((argument) => argument.getValue()) ?? [];
  const pairs = of("ENV").flatMap((each) => each.getArguments().map((word) => word.getValue()));
  const [uid, gid] = (words("USER")[0] ?? "0:0").split(":").map(Number);
  return {
    env: Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s, 2) as [string, string])),
    uid: uid ?? 0,
    gid: gid ?? 0,
    workdir: words("WORKDIR")[0] ?? "/",
    entrypoint: jsonWords(of("ENTRYPOINT")),
    command: jsonWords(of("CMD")),
    healthcheck: jsonWords(of("HEALTHCHECK")),
    stopSignal: words("STOPSIGNAL")[0] ?? "SIGTERM",
  };
}

/** The JSON form is the only one that works where there is no shell. */
function jsonWords(instructions: readonly Instruction[]): readonly string[] {
  const text = instructions.at(-1)?.getRawArgumentsContent() ?? "[]";
  const list = text.slice(Math.max(text.indexOf("["), 0));
  return JSON.parse(list.replace(/\s+$/, "")) as string[];
}
