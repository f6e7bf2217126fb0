/** A fault, planted by replacing a text that stands exactly once in a file, and the tests that must notice it. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly tests: readonly string[];
  /**
   * A pattern for the names of those that are run, where a file takes long; without it all of them are. For the simulation, how
   * many histories it may take.
   */
  readonly only?: string;
}

/**
 * Faults written as text: `## ` and their tests, `# ` and the file, both below packages/; then of each fault its name, with
 * ` | ` and `only` behind it, the lines to replace behind `- `, and those to put there behind `+ `.
 */
export function mutantsOf(text: string): readonly Mutant[] {
  const faults: { about: Omit<Mutant, "find" | "replace">; find: string[]; replace: string[] }[] =
    [];
  let [file, tests] = ["", ""];
  for (const line of text.trim().split("\n")) {
    const [, sign = "", rest = ""] = /^(##|#|-|\+) (.*)$/.exec(line) ?? [];
    const fault = faults.at(-1);
    if (sign === "##") tests = `packages/${rest}`;
    else if (sign === "#") file = `packages/${rest}`;
    else if (sign === "-") fault?.find.push(rest);
    else if (sign === "+") fault?.replace.push(rest);
    else {
      const [name = "", only] = line.split(" | ");
      const about = { name, file, tests: [tests], ...(only === undefined ? {} : { only }) };
      faults.push({ about, find: [], replace: [] });
    }
  }
  return faults.map(({ about, find, replace }) => {
    return { ...about, find: find.join("\n"), replace: replace.join("\n") };
  });
}
