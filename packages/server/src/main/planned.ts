import { invalidFields } from "@idmint/core";
import {
  exampleTexts,
  firstIdOf,
  type TagSettings,
  type TextFormat,
  textFormatOf,
  zoneOffsets,
} from "@idmint/core/server";
import type { Tag } from "@idmint/proto";
import { draftOf, outputOnlyViolations, tagOf } from "../api/convert.ts";
import type { TextPorts, UnguessableKey } from "../service/issue/tag-text.ts";
import { exampleText, isTextKind } from "../service/kinds/text-ids.ts";
import { NOWHERE } from "../service/tags/placement.ts";
import { settingsOf } from "../service/tags/settings.ts";
import { realSystem } from "./system.ts";
import { createTextMakers } from "./text-ids.ts";

/** A tag that is planned and not made. */
export interface PlannedTag {
  /** As servers would answer it, before its first id. */
  readonly tag: Tag;
  readonly settings: TagSettings;
  /**
   * Examples of its ids as callers would get them: the first and the last. For ids with a time they are one of now and
   * the last. For a sequence with periods they are of one period. Unguessable ids have none, since only a key makes
   * them.
   */
  readonly examples: readonly string[];
  /** Lengths of its texts in characters, for tags with a format. */
  readonly textLength: { readonly shortest: number; readonly longest: number } | undefined;
}

/**
 * What servers would make of a tag, with defaults filled in, without asking one. Throws INVALID_ARGUMENT for settings
 * that they would refuse. What only servers know is taken for granted: keys, Redis, ticket databases and a free name.
 */
export function plannedTag(wanted: Tag): PlannedTag {
  const nowMs = realSystem.wallClock();
  const draft = draftOf(wanted);
  const keyId = draft.unguessable?.keyId;
  const texts: TextPorts = {
    keys: new Map(keyId === undefined ? [] : [[keyId, UNSEEN_KEY]]),
    offsetAt: zoneOffsets(),
  };
  const placement = { ...NOWHERE, redisServerFor: () => "", hasTicketDatabases: true };
  const made = settingsOf(draft, { nowMs, placement, texts, keys: [] });
  const violations = [
    ...("violations" in made ? made.violations : []),
    ...outputOnlyViolations(wanted),
  ];
  if (violations.length > 0 || !("settings" in made)) throw invalidFields(violations);
  const { settings } = made;
  const times = { createdAtMs: nowMs, updatedAtMs: nowMs };
  const place = { periodStart: "", generation: 0n, version: 0n, epoch: 1n, revision: 0n };
  const floor = firstIdOf(settings.kind) - 1n;
  const tag = tagOf({ ...settings, ...place, ...times, state: "ACTIVE", floor });
  const format = textFormatOf(settings, texts.offsetAt);
  const examples = examplesOf(settings, nowMs, format);
  if (format === undefined) return { tag, settings, examples, textLength: undefined };
  const { shortest, longest } = format;
  return { tag, settings, examples, textLength: { shortest, longest } };
}

/** Stands in for a key, which servers have and a plan does not. */
const UNSEEN_KEY: UnguessableKey = {
  check: "",
  permutationOf: () => () => {
    throw new Error("a plan hides no ids");
  },
};

function examplesOf(
  settings: TagSettings,
  nowMs: number,
  format: TextFormat | undefined,
): readonly string[] {
  const { kind } = settings;
  if (isTextKind(kind)) return [exampleText(createTextMakers(realSystem), kind, "example")];
  return exampleTexts(settings, nowMs, format);
}
