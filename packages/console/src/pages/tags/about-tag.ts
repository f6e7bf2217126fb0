// What the dialogs of a tag say of it.
import { durationText } from "@idmint/core/kinds";
import { memoryMsOf } from "@idmint/core/server";
import { kindOf, settingsOfTag, type TagJson } from "./model/tag-values.ts";

export interface TagDialogProps {
  /** The tag as it was when the dialog opened. */
  readonly tag: TagJson;
  readonly onClose: () => void;
}

/** The Redis server that a tag counts on; empty: none. */
export function redisServerOf({ sequence, snowflake, redisSnowflake }: TagJson): string {
  return (sequence ?? snowflake ?? redisSnowflake)?.redisServer ?? "";
}

/** How long callers go on by themselves with what they hold. */
export function memoryText(tag: TagJson): string {
  const kind = kindOf(tag);
  return durationText(kind === undefined ? 0 : memoryMsOf(settingsOfTag(tag, kind)));
}
