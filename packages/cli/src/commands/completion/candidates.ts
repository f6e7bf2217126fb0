// What may come next on a command line, pure: from the tree of commands and the words that were typed.
import type { Argument, Command, Option } from "commander";
import type { WordParser } from "../../flags/parse.ts";
import { TOPICS } from "../../text/topics.ts";

/** A word that may come next, and what it means. */
export interface Candidate {
  readonly word: string;
  readonly text: string;
}

/** Names that only a server or the file of contexts knows. */
export type NameSource = "contexts" | "node-ids" | "nodes" | "tags";

/** What may come next. `before` is what the word begins with and is no part of a name, such as `--context=`. */
export type Next =
  | { readonly type: "files" }
  | { readonly type: "words"; readonly words: readonly Candidate[] }
  | {
      readonly type: "names";
      readonly source: NameSource;
      readonly before: string;
      readonly prefix: string;
      /** Flags that were typed, by their names in commander. */
      readonly flags: Readonly<Record<string, string | boolean>>;
    };

/** Where the names of a placeholder come from. A placeholder that is not here takes free text. */
const SOURCES: Readonly<Record<string, NameSource>> = {
  "<tag>": "tags",
  "<tags>": "tags",
  "<node>": "nodes",
  "--tag <name>": "tags",
  "--context <name>": "contexts",
  "context <name>": "contexts",
  "idmint node forget": "node-ids",
  "tag <name>": "tags",
};
/** Commands whose argument is a name that is not there yet. */
const NEW_NAMES: ReadonlySet<string> = new Set(["idmint tag create", "idmint context add"]);
const FILES: ReadonlySet<string> = new Set(["file", "place", "folder"]);

/** Where the cursor is. */
interface Spot {
  readonly command: Command;
  readonly flags: Record<string, string | boolean>;
  /** Arguments that were typed. */
  readonly count: number;
  /** The flag whose value comes next. */
  readonly pending: Option | undefined;
  /** The names of a command that is only asked about, as in `help tag create`. */
  readonly isAbout: boolean;
}

/** The commands whose names lead to the last of these words, as far as they do. */
export function pathTo(program: Command, typed: readonly string[]): readonly string[] {
  const names: string[] = [];
  let { command: at } = spotAfter(program, typed.slice(0, -1));
  for (; at.parent !== null; at = at.parent) names.unshift(at.name());
  return names;
}

/** What may stand in place of the last word. Never fails: a line that makes no sense has no next word. */
export function nextOf(program: Command, typed: readonly string[]): Next {
  const word = typed.at(-1) ?? "";
  const spot = spotAfter(program, typed.slice(0, -1));
  if (spot.pending !== undefined) return ofValue(spot, spot.pending, "", word);
  const [, flag, value] = /^(--[\w-]+)=(.*)$/s.exec(word) ?? [];
  if (flag !== undefined && value !== undefined) {
    const option = optionOf(spot.command, flag);
    return option === undefined ? words([]) : ofValue(spot, option, `${flag}=`, value);
  }
  if (word.startsWith("-") && !spot.isAbout) return words(starting(flagsOf(spot), word));
  if (spot.command.commands.length > 0) return words(starting(commandsOf(spot), word));
  if (spot.isAbout) return words([]);
  const { registeredArguments: all } = spot.command;
  const last = all.at(-1);
  const argument = all[spot.count] ?? (last?.variadic === true ? last : undefined);
  return argument === undefined ? words([]) : ofValue(spot, argument, "", word);
}

function words(found: readonly Candidate[]): Next {
  return { type: "words", words: found };
}

function starting(all: readonly Candidate[], start: string): readonly Candidate[] {
  return all.filter(({ word }) => word.startsWith(start));
}

function spotAfter(program: Command, typed: readonly string[]): Spot {
  const flags: Record<string, string | boolean> = {};
  let command = program;
  let count = 0;
  let pending: Option | undefined;
  let isAbout = false;
  for (const word of typed) {
    if (pending !== undefined) {
      flags[pending.attributeName()] = word;
      pending = undefined;
    } else if (word.startsWith("-") && word !== "-") {
      const [name = "", ...value] = word.split("=");
      const option = optionOf(command, name);
      if (option === undefined) continue;
      const takes = option.required || option.optional;
      if (takes && value.length === 0) pending = option;
      else flags[option.attributeName()] = takes ? value.join("=") : true;
    } else {
      const next = command.commands.find((each) => each.name() === word);
      if (next === undefined) count += 1;
      else if (next.name() === "help" && next.parent === program) isAbout = true;
      else command = next;
    }
  }
  return { command, flags, count, pending, isAbout };
}

/** The option of a flag, of the command or one above. */
function optionOf(command: Command, flag: string): Option | undefined {
  for (let at: Command | null = command; at !== null; at = at.parent) {
    const found = at.options.find(({ long, short }) => long === flag || short === flag);
    if (found !== undefined) return found;
  }
  return undefined;
}

function flagsOf({ command, flags }: Spot): readonly Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter((option) => flags[option.attributeName()] === undefined || option.variadic)
    .flatMap(({ long, description }) =>
      typeof long !== "string" ? [] : [{ word: long, text: firstOf(description) }],
    );
}

function commandsOf({ command, isAbout }: Spot): readonly Candidate[] {
  const names = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => !isAbout || each.name() !== "help")
    .map((each) => ({ word: each.name(), text: firstOf(each.description()) }));
  if (!isAbout || command.parent !== null) return names;
  const topics = Object.entries(TOPICS).map(([word, { about }]) => ({ word, text: about }));
  return [...names, ...topics];
}

/** A line of a menu has room for what comes first. */
function firstOf(text: string): string {
  return text.split(/[;(]/, 1)[0]?.trim() ?? "";
}

function ofValue(spot: Spot, wanted: Argument | Option, before: string, prefix: string): Next {
  const known = wordsOf(wanted);
  if (known !== undefined) {
    return words(
      starting(
        known.map((word) => ({ word: before + word, text: "" })),
        before + prefix,
      ),
    );
  }
  const { name, flag } = placeholderOf(wanted);
  if (FILES.has(name)) return { type: "files" };
  const source = flag === undefined ? sourceOfArgument(spot.command, name) : SOURCES[flag];
  return source === undefined
    ? words([])
    : { type: "names", source, before, prefix, flags: spot.flags };
}

/** The words that a value may be, where these are a few. */
function wordsOf({ argChoices, parseArg }: Argument | Option): readonly string[] | undefined {
  if (argChoices !== undefined || parseArg === undefined) return argChoices;
  const parser: Partial<WordParser<unknown>> & object = parseArg;
  return parser.words;
}

function placeholderOf(wanted: Argument | Option): { name: string; flag: string | undefined } {
  if (!("flags" in wanted)) return { name: wanted.name(), flag: undefined };
  const name = /[<[]([^\]>.|]+)/.exec(wanted.flags)?.[1] ?? "";
  return { name, flag: `${wanted.long} <${name}>` };
}

function sourceOfArgument(command: Command, name: string): NameSource | undefined {
  const group = command.parent;
  const whole = `${group?.parent?.name() ?? ""} ${group?.name() ?? ""} ${command.name()}`;
  if (NEW_NAMES.has(whole)) return undefined;
  return SOURCES[whole] ?? SOURCES[`<${name}>`] ?? SOURCES[`${group?.name() ?? ""} <${name}>`];
}
