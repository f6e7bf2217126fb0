import { type FieldViolation, IdmintError, keyUnknown } from "@idmint/core";
import {
  type Format,
  hidingViolations,
  type KeyCheck,
  type TagSettings,
  textFormatOf,
  type Unguessable,
} from "@idmint/core/server";
import type { TextPorts } from "../issue/tag-text.ts";

const DEFAULT_KEY_DIGITS = 1;
const FIELD = "tag.unguessable";

/** How the ids of a tag are to be written, as a caller asks for it. */
export interface WritingDraft {
  /** Undefined: ids are numbers. */
  readonly format: string | undefined;
  /** Undefined: ids are as they were minted. 0 for `keyDigits` means the default. */
  readonly unguessable: { readonly keyId: number; readonly keyDigits: number } | undefined;
}

/** How the ids of a tag are written. */
export type Writing = Pick<TagSettings, "format" | "unguessable">;

/**
 * The format and the key of a tag whose other settings are good, or what is wrong with them. KEY_UNKNOWN when this server
 * has not the key that is asked for, or the tag had another one under its number.
 */
export function writingOf(
  { format, unguessable }: WritingDraft,
  settings: Omit<TagSettings, keyof Writing>,
  { texts, keys }: { readonly texts: TextPorts; readonly keys: readonly KeyCheck[] },
): Writing | { readonly violations: readonly [FieldViolation, ...FieldViolation[]] } {
  let key: Unguessable | undefined;
  if (unguessable !== undefined) {
    const { keyId, keyDigits } = unguessable;
    const wanted = { keyId, keyDigits: keyDigits === 0 ? DEFAULT_KEY_DIGITS : keyDigits };
    const [first, ...others] = hidingViolations(FIELD, settings, wanted);
    if (first !== undefined) return { violations: [first, ...others] };
    key = { ...wanted, keys: withKey(keys, keyId, texts) };
  }
  const written: Writing = {
    ...(format === undefined ? {} : { format: { template: format } satisfies Format }),
    ...(key === undefined ? {} : { unguessable: key }),
  };
  const [first, ...others] = formatViolations({ ...settings, ...written }, texts);
  return first === undefined ? written : { violations: [first, ...others] };
}

function formatViolations(settings: TagSettings, texts: TextPorts): readonly FieldViolation[] {
  try {
    textFormatOf(settings, texts.offsetAt);
    return [];
  } catch (thrown) {
    if (thrown instanceof IdmintError && thrown.violations.length > 0) return thrown.violations;
    throw thrown;
  }
}

/** The keys of a tag with this one among them, ascending. One it has already need not be here to change something else. */
function withKey(keys: readonly KeyCheck[], keyId: number, texts: TextPorts): readonly KeyCheck[] {
  const key = texts.keys.get(keyId);
  const known = keys.find((each) => each.keyId === keyId);
  if (known !== undefined && (key === undefined || key.check === known.check)) return keys;
  if (key === undefined || known !== undefined) throw keyUnknown(keyId);
  return [...keys, { keyId, check: key.check }].toSorted((a, b) => a.keyId - b.keyId);
}
