import type { Command } from "commander";
import type { Io } from "../process/io.ts";
import { isJson } from "../flags/options.ts";

/** Prints an answer: as one line of JSON with --json, as text otherwise. Both are made only when they are printed. */
export async function printAnswer(
  command: Command,
  io: Io,
  answer: { json: () => unknown; text: () => string },
): Promise<void> {
  await io.out(isJson(command) ? `${JSON.stringify(answer.json())}\n` : answer.text());
}

/** The end of a command's help. */
export function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example}\n`).join("")}`;
}
