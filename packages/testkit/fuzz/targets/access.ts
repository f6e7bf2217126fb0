// Files that say who may: principals as YAML, tokens of Tinyid's clients line by line, and broken ones.
import { stringify } from "yaml";
import { parseAccess } from "../../../server/src/access/parse.ts";
import { parseTinyidTokens } from "../../../server/src/access/tinyid-tokens.ts";
import type { Dice } from "../../sim/world/random.ts";
import { brokenText } from "../draw/bytes.ts";
import { TAGS, TEXTS } from "../draw/values.ts";
import type { Target } from "../target.ts";
import { faultOfThrown, SECRET } from "./refusal.ts";

interface Input {
  readonly of: "access" | "tinyid";
  readonly text: string;
}

const LETTERS = [
  "\n",
  ":",
  " ",
  "\t",
  ",",
  "- ",
  "&a ",
  "*a",
  "<<: *a",
  "{",
  "]",
  "#",
  '"',
  "!!set",
  "\u0000",
];
const PATTERNS = ["*", "orders.*", "orders", "a**", "", "_x", ...TAGS];
const NAMES = ["ops", "orders", "a b", "", "__proto__", "constructor", "x".repeat(129), "é"];
const HASH = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";

function some<T>(dice: Dice, of: readonly T[]): readonly T[] {
  return Array.from({ length: dice.int(0, 3) }, () => dice.pick(of));
}

function token(dice: Dice): unknown {
  return {
    id: dice.pick(["0123456789abcdef", "0123456789abcdeF", "1", SECRET, 12]),
    sha256: dice.pick([HASH, HASH.slice(1), SECRET, 1e3]),
    expires: dice.pick(["2027-01-01T00:00:00Z", "2027-02-30", "never", "+275760-09-13", 0]),
    ...(dice.chance(0.1) ? { secret: SECRET } : {}),
  };
}

function principal(dice: Dice): unknown {
  if (dice.chance(0.05)) return dice.pick([null, [], "x", 1]);
  return {
    ...(dice.chance(0.7)
      ? { [dice.pick(["issue", "observe", "admin"])]: some(dice, PATTERNS) }
      : {}),
    ...(dice.chance(0.4) ? { certificates: some(dice, ["a", "spiffe://a/b", "", "*"]) } : {}),
    ...(dice.chance(0.5) ? { tokens: some(dice, [token(dice), token(dice), null]) } : {}),
    ...(dice.chance(0.05) ? { [dice.pick(TEXTS)]: dice.pick(TEXTS) } : {}),
  };
}

function accessFile(dice: Dice): string {
  const principals = Object.fromEntries(
    Array.from({ length: dice.int(0, 4) }, () => [dice.pick(NAMES), principal(dice)]),
  );
  return stringify(dice.chance(0.95) ? { principals } : { principals, more: 1 });
}

function tinyidFile(dice: Dice): string {
  const line = (): string =>
    `${dice.pick([SECRET, "t", ""])}${dice.pick([",", "\t", ";"])}${dice.pick(PATTERNS)}`;
  return Array.from({ length: dice.int(0, 6) }, line).join(dice.pick(["\n", "\r\n"]));
}

function draw(dice: Dice): string {
  const of = dice.chance(0.8) ? "access" : "tinyid";
  const right = of === "access" ? accessFile(dice) : tinyidFile(dice);
  const text = dice.chance(0.5) ? brokenText(dice, right, LETTERS) : right;
  return JSON.stringify({ of, text } satisfies Input);
}

export function accessTarget(): Target {
  return {
    draw,
    run: (input) => {
      const { of, text } = JSON.parse(input) as Input;
      try {
        if (of === "access") parseAccess(text);
        else parseTinyidTokens(text);
        return undefined;
      } catch (thrown) {
        return faultOfThrown(thrown);
      }
    },
    atOnce: 1,
    withinMs: 2_000,
  };
}
