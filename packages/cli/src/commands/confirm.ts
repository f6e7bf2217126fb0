import { invalidField } from "@idmint/core";
import type { Command } from "commander";
import { CommandFailure, failureOf } from "../calls/failure.ts";
import type { Io } from "../process/io.ts";
import { connectionSettings, isConfirmed, isJson } from "../flags/options.ts";
import { plain } from "../process/plain.ts";

/** A step that nobody should take by mistake. */
export interface Step {
  /** What it works on, such as `store: sqlite:/var/lib/idmint/idmint.db`. */
  readonly place: string;
  /** What it does, as a sentence that begins with a verb: `raises every floor by 1000`. */
  readonly effect: string;
  /** The command that undoes it. Default: it cannot be undone. */
  readonly undoneBy?: string;
}

/**
 * Shows what a step works on, then goes on if --yes was typed or a person on a terminal types yes. Rejects otherwise.
 * With --json and --yes it shows nothing, so that stderr holds nothing but a failure.
 *
 * Invariant: a command calls this before its first change. Nothing else stands between a mistyped or forgotten setting
 * and a store that cannot be brought back.
 */
export async function confirm(command: Command, io: Io, step: Step): Promise<void> {
  const { place, effect, undoneBy } = step;
  const shown = plain(place);
  const undoing = undoneBy === undefined ? "cannot be undone" : `is undone by: ${undoneBy}`;
  if (isConfirmed(command)) {
    if (!isJson(command)) io.err(`idmint: ${shown}\n`);
    return;
  }
  if (io.ask === undefined) {
    throw invalidField("--yes", `is required: this ${effect}, and ${undoing} (${shown})`);
  }
  io.err(`idmint: ${shown}\n  This ${effect}, and ${undoing}.\n`);
  const answer = await io.ask("  Type yes to go on: ");
  if (answer?.trim().toLowerCase() === "yes") return;
  throw new CommandFailure(
    failureOf("CANCELLED", "CALL_CANCELLED", "the answer was not yes, and nothing was changed"),
  );
}

/** The server that a command calls, as the place of a step. */
export function serverPlace(command: Command, io: Io): string {
  return `server: ${connectionSettings(command, io.env).address}`;
}
