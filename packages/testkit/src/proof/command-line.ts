// The command lines of what tries the promises: pnpm sim, nemesis, crash-points and fuzz.
import { parseArgs, type ParseArgsOptionsConfig } from "node:util";

type Values<Options extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ options: Options }>
>["values"];

/** Tells what is wrong with a command line and how it is used, and ends the process. */
export function refuse(text: string, usage: string): never {
  console.error(`${text}\n\n${usage}`);
  process.exit(2);
}

/** The flags that were given. With --help it prints the usage instead, and ends the process. */
export function readFlags<const Options extends ParseArgsOptionsConfig>(
  usage: string,
  options: Options,
): Values<Options> {
  try {
    const help = { type: "boolean" } as const;
    const { values } = parseArgs({ options: { ...options, help } });
    if (!Object.hasOwn(values, "help")) return values;
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error), usage);
  }
  console.log(usage);
  return process.exit(0);
}

/** The value of a flag that counts something. */
export function wholeOf(flag: string, text: string, usage: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  return refuse(`--${flag} must be a whole number from 1 on, got ${text}`, usage);
}
