// Configurations: files of YAML, variables and flags out of the table of options, and broken ones.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { stringify } from "yaml";
import { loadConfig } from "../../../server/src/config/load.ts";
import { envOf, flagOf, type Option } from "../../../server/src/config/option.ts";
import { OPTIONS } from "../../../server/src/config/table.ts";
import type { Dice } from "../../sim/world/random.ts";
import { brokenText } from "../draw/bytes.ts";
import { TEXTS } from "../draw/values.ts";
import type { Target } from "../target.ts";
import { faultOfThrown, SECRET } from "./refusal.ts";

interface Input {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
  readonly flags: Readonly<Record<string, string>>;
}

const options: readonly Option<unknown>[] = Object.values(OPTIONS);

/** What some options take, by a word in what they say that they accept. */
const VALUES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/duration/, ["0ms", "1s", "15min", "24h", "1.5s", "1e3s", "-1s", "1", "9999999999999h"]],
  [/host:port/, ["127.0.0.1:0", "[::1]:7600", "localhost:65536", "none", "a:1,b:2", "::1:1"]],
  [/integer|number a second/, ["0", "1", "64", "-0", "01", "1e3", "9223372036854775808", "1_000"]],
  [/number from/, ["0", "0.1", "1", "Infinity", "NaN", "1e-400", ".5"]],
  [/true or false/, ["true", "false", "yes", "1", "TRUE"]],
  [/one of|names separated/, ["off", "on", "info", "json", "fast", "all", "fsync", "none,none"]],
  [/name=url/, ["a=redis://h:1", "redis://h", "a=redis://h,a=redis://i", "a=", "=redis://h"]],
  [/number=path/, ["1=/k", "1=/k,1=/l", "999=/k", "1000=/k", "x=/k"]],
  [
    /url|:\/\//i,
    [
      "sqlite:x.db",
      "sqlite:",
      `postgres://u:${SECRET}@h/db`,
      "postgres://h1,h2:5432/db?sslmode=require",
      "etcd://h:2379",
      "etcds://h1:1,h2:2",
      "mysql://h",
      "https://h/p",
      `https://u:${SECRET}@h/`,
      "http://[::1",
      "http://h:99999/",
    ],
  ],
];
const LETTERS = [
  "\n",
  ":",
  " ",
  "\t",
  "- ",
  "&a ",
  "*a",
  "{",
  "}",
  "[",
  "#",
  '"',
  "'",
  "!!",
  "0",
  "~",
];

function valueOf(dice: Dice, option: Option<unknown>): string {
  if (option.isSecret === true) return dice.pick([SECRET, `${SECRET} \n`, SECRET.repeat(400)]);
  if (dice.chance(0.3) && option.default !== undefined) return option.default;
  const known = VALUES.find(([word]) => word.test(option.type.accepts))?.[1];
  return known !== undefined && dice.chance(0.8) ? dice.pick(known) : dice.pick(TEXTS);
}

function chosen(dice: Dice): readonly Option<unknown>[] {
  return Array.from({ length: dice.int(0, 6) }, () => dice.pick(options));
}

/** A value as YAML may have it. */
function yamlOf(dice: Dice, text: string): unknown {
  return dice.pick<unknown>([
    text,
    text,
    text,
    Number(text),
    text === "true",
    [text],
    { [text]: 1 },
  ]);
}

function fileOf(dice: Dice): string {
  const root: Record<string, unknown> = {};
  for (const option of chosen(dice)) {
    const [first = "", second] = option.key.split(".");
    const value = yamlOf(dice, valueOf(dice, option));
    if (second === undefined) root[first] = value;
    else root[first] = { ...(root[first] as object | undefined), [second]: value };
  }
  if (dice.chance(0.1)) root[dice.pick(TEXTS)] = dice.pick(TEXTS);
  const file = stringify(root);
  return dice.chance(0.4) ? brokenText(dice, file, LETTERS) : file;
}

function draw(dice: Dice): string {
  const env = chosen(dice).map((option) => [envOf(option), valueOf(dice, option)] as const);
  const flags = chosen(dice).flatMap((option) => {
    const flag = flagOf(option);
    return flag === undefined || flag === "config" ? [] : [[flag, valueOf(dice, option)] as const];
  });
  if (dice.chance(0.05)) env.push([`IDMINT_${dice.pick(TEXTS)}`, dice.pick(TEXTS)]);
  const input: Input = {
    file: dice.chance(0.7) ? fileOf(dice) : "",
    env: Object.fromEntries(env.filter(([name]) => !/CONFIG$|_FILE$/.test(name))),
    flags: Object.fromEntries(flags),
  };
  return JSON.stringify(input);
}

export function configTarget(): Target {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-fuzz-config-"));
  const config = path.join(folder, "idmint.yaml");
  return {
    draw,
    run: (text) => {
      const { file, env, flags } = JSON.parse(text) as Input;
      if (file !== "") writeFileSync(config, file);
      try {
        loadConfig({ env, flags: file === "" ? flags : { ...flags, config } });
        return undefined;
      } catch (thrown) {
        return faultOfThrown(thrown);
      }
    },
    atOnce: 1,
    withinMs: 2_000,
    close: async () => {
      rmSync(folder, { recursive: true });
    },
  };
}
