// What the dialogs of a tag say of it.
import { durationText, redisServerOf } from "@idmint/core/kinds";
import { memoryMsOf, periodsOf } from "@idmint/core/server";
import { ofSettings, type TagJson } from "./model/tag-values.ts";

export interface TagDialogProps {
  /** The tag as it was when the dialog opened. */
  readonly tag: TagJson;
  readonly onClose: () => void;
}

/** The Redis server that a tag counts on; undefined: none. */
export function redisServerOfTag(tag: TagJson): string | undefined {
  return ofSettings(tag, redisServerOf);
}

/** Whether the ids of a tag begin again in each period. */
export function hasPeriods(tag: TagJson): boolean {
  return ofSettings(tag, periodsOf) !== undefined;
}

/** How long callers go on by themselves with what they hold. */
export function memoryText(tag: TagJson): string {
  return durationText(ofSettings(tag, memoryMsOf) ?? 0);
}
