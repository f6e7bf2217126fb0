/** Whatever a shell would not take as one plain word. */
const PLAIN = /^[A-Za-z0-9_./:=,@%+-]+$/;

/**
 * A line for a POSIX shell that runs `idmint` with these words. Flags are given by name: `{ zone: "eu", all: true }` are
 * `--zone eu --all`; one with several values is repeated, and one that is undefined, empty or false is left out.
 */
export function cliLine(
  words: readonly string[],
  flags: Readonly<Record<string, FlagValue | readonly string[]>> = {},
): string {
  const typed = Object.entries(flags).flatMap(([name, value]) =>
    Array.isArray(value)
      ? value.flatMap((one: string) => flagWords(name, one))
      : flagWords(name, value as FlagValue),
  );
  // From the first word that looks like a flag on, all words stand behind `--`, where nothing is taken for one.
  const dash = words.findIndex((word) => word.startsWith("-"));
  const all =
    dash < 0
      ? [...words, ...typed]
      : [...words.slice(0, dash), ...typed, "--", ...words.slice(dash)];
  return ["idmint", ...all.map(quoted)].join(" ");
}

type FlagValue = string | boolean | undefined;

function flagWords(name: string, value: FlagValue): readonly string[] {
  if (value === undefined || value === false || value === "") return [];
  if (value === true) return [`--${name}`];
  // A value that looks like a flag belongs to its name only when it is joined to it.
  return value.startsWith("-") ? [`--${name}=${value}`] : [`--${name}`, value];
}

/** A word in single quotes, where the shell would read anything else into it. */
function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
