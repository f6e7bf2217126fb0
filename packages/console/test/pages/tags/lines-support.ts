import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { type Field, type KindName, durationText } from "@idmint/core/kinds";
import { createProgram } from "../../../../cli/src/program.ts";
import { initialValues } from "../../../src/pages/tags/model/draft.ts";
import { formFields, type FormValues } from "../../../src/pages/tags/model/fields.ts";
import { TICKED } from "../../../src/pages/tags/model/typed.ts";

type Command = Awaited<ReturnType<typeof createProgram>>;

/** Forms of each kind that a test tries. */
export const RUNS: number = process.env["IDMINT_LONG"] === "1" ? 500 : 15;

/** The words that a shell makes of a line. */
function wordsOf(line: string): readonly string[] {
  const ran = spawnSync("sh", ["-c", `set -- ${line}; printf '%s\\0' "$@"`], { encoding: "utf8" });
  if (ran.status !== 0) throw new Error(`sh: ${ran.stderr}`);
  return ran.stdout.split("\0").slice(0, -1);
}

/** What the real command line reads of a line, as the action of its command gets it. */
export async function parsedLine(line: string): Promise<{
  readonly command: string;
  readonly args: readonly string[];
  readonly flags: Readonly<Record<string, unknown>>;
}> {
  const [program, ...words] = wordsOf(line);
  if (program !== "idmint") throw new Error(`the line begins with ${program}`);
  const root = await createProgram(
    {
      env: {},
      signal: new AbortController().signal,
      ask: undefined,
      out: async () => undefined,
      err: () => undefined,
    },
    words,
  );
  let found: Awaited<ReturnType<typeof parsedLine>> | undefined;
  const catchAll = (command: Command): void => {
    for (const below of command.commands) catchAll(below);
    command.action((...given: unknown[]) => {
      const args = command.processedArgs as readonly string[];
      const flags = given[args.length] as Readonly<Record<string, unknown>>;
      found = { command: command.name(), args, flags };
    });
  };
  for (const command of root.commands) catchAll(command);
  await root.parseAsync(words, { from: "user" });
  if (found === undefined) throw new Error(`no command was run by ${line}`);
  return found;
}

/** Texts that markup, shells and terminals would read something into. */
const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    "<img src=x onerror=alert(1)>",
    "a'b\"c`d$e\\f",
    "-x",
    "--kind=uuid",
    "🙂".repeat(256),
    "‮abc\u2067",
    "two\nlines",
    "*",
    "~",
    "#",
  ),
  fc.string({ unit: "grapheme", maxLength: 40 }).filter((text) => !text.includes("\0")),
);

/** What somebody may type into a field. */
function typedInto(path: string, field: Field): fc.Arbitrary<string> {
  const [min, max] = field.range ?? [1, 2 ** 31 - 1];
  switch (field.type) {
    case "id":
      return fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String);
    case "int32":
    case "uint32":
      return fc.integer({ min, max }).map(String);
    case "duration":
      return fc
        .integer({ min, max: Math.min(max, 999_999_999) })
        .map(durationText)
        .filter((text) => /^\d{1,9}[a-z]+$/u.test(text));
    case "time":
      return fc
        .date({ min: new Date(0), max: new Date("2026-01-01"), noInvalidDate: true })
        .map((date) => date.toISOString());
    case "enum":
      return fc.constantFrom(...(field.enum?.values ?? []));
    case "bool":
      return fc.constant(TICKED);
    case "text":
      return path === "format.template"
        ? fc.constantFrom("A{id:19}", "{id}", "x{id:8}{luhn}")
        : hostileText;
    case "message":
      throw new Error(`${path} is typed field by field`);
    default:
      return field.type satisfies never;
  }
}

/** A form of a kind, some of whose fields were typed into. */
export function formOf(kind: KindName): fc.Arbitrary<FormValues> {
  const fields = Object.fromEntries(
    formFields(kind).map(({ path, field }) => [path, typedInto(path, field)]),
  );
  const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,30}$/u);
  return fc.tuple(fc.record(fields, { requiredKeys: [] }), name).map(([typed, tag]) => {
    // Digits of a key without the key are no request, and no line.
    const { "unguessable.key_digits": digits, ...rest } = typed as Record<string, string>;
    const key =
      rest["unguessable.key_id"] === undefined || digits === undefined
        ? {}
        : { "unguessable.key_digits": digits };
    return { ...initialValues(kind), ...rest, ...key, name: tag };
  });
}
