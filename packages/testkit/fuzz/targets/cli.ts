// Command lines out of the tree of commands, with values that flags take and values that none does, in this process.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { CODE_OF_REASON } from "@idmint/core";
import { createProgram, run } from "../../../cli/src/program.ts";
import { configFlags } from "../../../server/src/config/docs.ts";
import type { Dice } from "../../sim/world/random.ts";
import { TAGS, TEXTS } from "../draw/values.ts";
import type { Target } from "../target.ts";
import type { World } from "../world.ts";

type Command = Awaited<ReturnType<typeof createProgram>>;

interface Line {
  readonly words: readonly string[];
  readonly options: readonly { readonly flags: string; readonly choices: readonly string[] }[];
  readonly values: readonly string[];
}

/** Commands that go on until somebody ends them are ended. */
const ABORT_MS = 1_500;
const WITHIN_MS = 30_000;
/** Of servers, which listen until their process is told to end: each line of them has a wrong address, too. */
const SERVERS = new Set(["serve", "start-dev"]);
const WRONG_ADDRESS = ["--grpc-address", "nowhere"];
const REASONS: Readonly<Partial<Record<string, string>>> = CODE_OF_REASON;

/** What is put where a usage names a value so; a word in it decides. */
const VALUES: readonly (readonly [RegExp, readonly string[]])[] = [
  [
    /host:port|server/,
    ["127.0.0.1:1", "localhost", "[::1]:1", "127.0.0.1:99999", ":1", "http://x"],
  ],
  [
    /time|^day|period/,
    ["1s", "500ms", "0s", "5", "-1s", "1e9h", "2026-11-28", "2026-02-30", "now"],
  ],
  [/file|place/, ["/nowhere", ".", "/dev/null", "contexts.json", "dump.sql", "a\u001b]0;x"]],
  [/^(?:count|number|numbers|ids|calls|looks|weight|worker|id|old)/, ["1", "0", "-1", "10", "1e3"]],
  [/^(?:tag|tags|name|names|service|token|principal)/, TAGS],
  [/^kind/, ["segment", "sequence", "snowflake", "uuid", "object-id", "ticket", "redis-snowflake"]],
  [/template|format/, ["A-{id}", "{id", "{yyyyMMdd}{seq}", "json"]],
  [/^zone/, ["UTC", "Mars/Base", "Europe/Berlin"]],
  [/^command/, ["tag", "create", "kinds", "TAG_PAUSED", "help"]],
  [/url/i, ["sqlite:own.db", "sqlite:/nowhere/x.db", "mysql://x", "postgres://127.0.0.1:1/x"]],
];
/** Reads what a person types. */
const STDIN = "-";

async function tree(): Promise<readonly Line[]> {
  const io = { env: {}, out: async () => undefined, err: () => undefined } as const;
  const program = await createProgram({ ...io, signal: new AbortController().signal });
  const lines: Line[] = [];
  const walk = (command: Command, words: readonly string[], above: Line["options"]): void => {
    const own = command.options.map(({ flags, argChoices: choices = [] }) => ({ flags, choices }));
    const isServer = SERVERS.has(words[0] ?? "");
    const more = isServer ? configFlags().map(({ flags }) => ({ flags, choices: [] })) : [];
    const options = [...above, ...own, ...more];
    const values = command.registeredArguments.map((argument) => argument.name());
    if (command.commands.length === 0) lines.push({ words, options, values });
    for (const one of command.commands) walk(one, [...words, one.name()], options);
  };
  walk(program, [], []);
  return lines;
}

function valueOf(dice: Dice, usage: string, choices: readonly string[] = []): string {
  if (dice.chance(0.2)) return dice.pick(TEXTS);
  if (choices.length > 0) return dice.pick(choices);
  const known = VALUES.find(([word]) => word.test(usage))?.[1];
  return dice.pick(known ?? TEXTS);
}

function flagOf(dice: Dice, { flags, choices }: Line["options"][number]): readonly string[] {
  const flag = /--[\w-]+/.exec(flags)?.[0] ?? flags;
  const [, usage] = /[<[](.*)[>\]]/.exec(flags) ?? [];
  if (usage === undefined) return dice.chance(0.97) ? [flag] : [`${flag}=${dice.pick(TEXTS)}`];
  const value = valueOf(dice, /url/.test(flag) ? "url" : usage, choices);
  if (dice.chance(0.03)) return [flag];
  return dice.chance(0.2) ? [`${flag}=${value}`] : [flag, value];
}

/** Words that are wrong somewhere: one too many, one too few, others swapped. */
function spoilt(dice: Dice, words: string[]): void {
  const at = dice.int(0, words.length);
  switch (dice.int(0, 3)) {
    case 0:
      words.splice(at, 0, dice.pick(TEXTS));
      break;
    case 1:
      words.splice(at, 1);
      break;
    case 2:
      words.splice(at, 0, dice.pick(["--", "--help", "-x", "--=", "--json=1", "--no-tls"]));
      break;
    default:
      words.splice(at, 0, ...words.splice(dice.int(0, words.length), 2));
  }
}

function draw(dice: Dice, lines: readonly Line[]): string {
  const { words, options, values } = dice.pick(lines);
  const args = [...words];
  for (const value of values) if (dice.chance(0.9)) args.push(valueOf(dice, value));
  for (let flags = dice.int(0, 4); flags > 0; flags--) {
    args.splice(dice.int(words.length, args.length), 0, ...flagOf(dice, dice.pick(options)));
  }
  if (dice.chance(0.4)) args.push("--json");
  if (dice.chance(0.4)) args.push("--yes");
  if (dice.chance(0.25)) spoilt(dice, args);
  return JSON.stringify(args.filter((word) => word !== STDIN));
}

interface Outcome {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

// oxlint-disable-next-line no-control-regex -- It is what a terminal must not be sent.
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
const EXIT_CODES = new Set([0, 1, 2, 3, 4, 5, 130]);

function faultOf(args: readonly string[], { exitCode, out, err }: Outcome): string | undefined {
  if (!EXIT_CODES.has(exitCode)) return `ended with ${exitCode}`;
  if (HARMFUL.test(err)) return `what a terminal obeys: ${JSON.stringify(err)}`;
  if (HARMFUL.test(out)) return `what a terminal obeys on stdout: ${JSON.stringify(out)}`;
  // What is not well is told in the answer.
  if (exitCode === 0 || exitCode === 5) return undefined;
  const last = err.trimEnd().split("\n").at(-1) ?? "";
  if (!args.includes("--json")) {
    const reason = /^idmint: ([A-Z_]+): /m.exec(err)?.[1] ?? "none";
    return REASONS[reason] === undefined || reason === "INTERNAL" ? `says ${err}` : undefined;
  }
  const { error } = JSON.parse(last) as { error: { code: string; reason: string } };
  return REASONS[error.reason] === error.code && error.code !== "INTERNAL" ? undefined : last;
}

export async function cliTarget(world: World): Promise<Target> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-fuzz-cli-"));
  writeFileSync(
    path.join(folder, "dump.sql"),
    "CREATE TABLE `a` (`x` int);\nINSERT INTO `a` VALUES (1);\n",
  );
  mkdirSync(path.join(folder, "home"));
  const before = process.cwd();
  // Names of files are looked for where whoever types is.
  process.chdir(folder);
  const env = {
    HOME: path.join(folder, "home"),
    IDMINT_ADDRESS: world.grpcAddress,
    IDMINT_STORE_URL: "sqlite:own.db",
  };
  const lines = await tree();
  const once = async (args: readonly string[]): Promise<Outcome> => {
    let [out, err] = ["", ""];
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), ABORT_MS);
    const exitCode = await run(args, {
      env,
      signal: abort.signal,
      out: async (text) => void (out += text),
      err: (text) => void (err += text),
    });
    clearTimeout(timer);
    return { exitCode, out, err };
  };
  return {
    draw: (dice) => draw(dice, lines),
    run: async (text) => {
      const typed = JSON.parse(text) as readonly string[];
      const isServer = typed.some((word) => SERVERS.has(word));
      const args = isServer ? [...typed.filter((word) => word !== "--"), ...WRONG_ADDRESS] : typed;
      const isStop = args.includes("stop-issuing");
      const outcome = await (isStop ? world.aroundStop(() => once(args)) : once(args));
      return faultOf(args, outcome);
    },
    faults: world.faults,
    atOnce: 4,
    withinMs: WITHIN_MS,
    close: async () => {
      process.chdir(before);
      await world.close();
      rmSync(folder, { recursive: true });
    },
  };
}
