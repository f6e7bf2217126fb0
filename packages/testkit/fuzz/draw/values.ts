// What fields are filled with: values at edges, odd texts, and enough usual ones to come past the first check.
import type { Dice } from "../../sim/world/random.ts";

/** Tags that a world has, one or more of each kind, and some that it does not have. */
export const TAGS = [
  "segment",
  "sequence",
  "daily",
  "snowflake",
  "uuid",
  "object",
  "text",
  "secret",
  "made-1",
  "made-2",
  "ghost",
] as const;

const NUMBERS: readonly bigint[] = [
  0n,
  1n,
  2n,
  3n,
  10n,
  63n,
  64n,
  100n,
  127n,
  128n,
  1_000n,
  10_000n,
  10_001n,
  10_000_000n,
  10_000_001n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
  -1n,
  -(2n ** 31n),
  -(2n ** 63n),
];

export const TEXTS: readonly string[] = [
  "",
  "a",
  "0",
  "-1",
  "1e3",
  "NaN",
  "null",
  "__proto__",
  "constructor",
  "toString",
  "../..",
  "%00",
  "\u0000",
  "a\u0000b",
  "\n",
  "\r\nx: y",
  "\u001b[31m",
  "\u202Etxt",
  "\ufeff",
  "\ud800",
  "é漢😀",
  "Å".normalize("NFD"),
  "' OR 1=1 --",
  "${1+1}",
  "{{id}}",
  "9223372036854775807",
  "9223372036854775808",
  "x".repeat(128),
  "x".repeat(129),
  "x".repeat(257),
  "😀".repeat(300),
  "x".repeat(5_000),
];

/** Texts that some field takes, by a word in its name. */
const USUAL: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(?:tag|name|prefix|tags|resource)$/, TAGS],
  [
    /template/,
    [
      "A-{id}",
      "{id:8}{luhn}",
      "{id:radix36}",
      "{period}-{id:6}",
      "{yyyyMMdd}{machine}{seq}",
      "{id",
    ],
  ],
  [/time_zone/, ["UTC", "Europe/Berlin", "Asia/Shanghai", "Mars/Base", "+08:00", "utc"]],
  [/period/, ["2026-11-28", "2026-02-30", "2026-1-1", "9999-12-31", "+12026-01-01", "today"]],
  [/^(?:text|id)$/, ["1", "A-1", "2026-11-28-000001", "01890a5d-ac96-774b-bcce-b302099a8057", "x"]],
  [/redis_server/, ["a", "default", ""]],
  [/paths/, ["*", "segment.min", "description", "name", "kind", "format", "a.b.c", "state"]],
  [/token/, ["1", "AAAA", "eyJ4IjoxfQ", "0123456789abcdef"]],
];

/** A whole number that a field may have, or not. */
export function number(dice: Dice): bigint {
  if (dice.chance(0.5)) return BigInt(dice.int(0, 20));
  const edge = dice.pick(NUMBERS);
  return dice.chance(0.2) ? edge + BigInt(dice.int(-2, 2)) : edge;
}

export function text(dice: Dice, field: string): string {
  const usual = USUAL.find(([word]) => word.test(field))?.[1];
  if (usual !== undefined && dice.chance(0.8)) return dice.pick(usual);
  return dice.pick(TEXTS);
}

/** Seconds of times and durations, those that fields take more often than others. */
export function seconds(dice: Dice): bigint {
  const usual = [0n, 1n, 5n, 60n, 900n, 3_600n, 86_400n, 259_200n, 1_767_225_600n, 1_795_000_000n];
  const edges = [-62_135_596_800n, 253_402_300_799n, 253_402_300_800n, 315_576_000_001n];
  if (dice.chance(0.7)) return dice.pick(usual);
  return dice.chance(0.5) ? dice.pick(edges) : number(dice);
}

export function nanos(dice: Dice): number {
  if (dice.chance(0.7)) return 0;
  return dice.pick([1, 1_000_000, 500_000_000, 999_999_999, 1_000_000_000, -1, 2 ** 31 - 1]);
}
