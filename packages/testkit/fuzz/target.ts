import type { Dice } from "../sim/world/random.ts";

/** What is fuzzed. An input is a line of text, so that it can be printed, kept and sent again as it is. */
export interface Target {
  readonly draw: (dice: Dice) => string;
  /** Fulfils with what went wrong; undefined: nothing. What it throws went wrong, too. */
  readonly run: (input: string) => Promise<string | undefined> | string | undefined;
  /** What went wrong since the last time that no input was answered with. */
  readonly faults?: () => readonly string[];
  /** Inputs under way at once. Those of pure code are one. */
  readonly atOnce: number;
  /** Longest that an input may take, on a machine on which much else runs. */
  readonly withinMs: number;
  /** Most that the heap may grow, when all garbage is gone, between a quarter of the inputs and their end. */
  readonly growMb?: number;
  readonly close?: () => Promise<void>;
}
