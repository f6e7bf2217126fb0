import { type FieldViolation, invalidField } from "../../errors.ts";
import { specOf, whyNotHidden } from "../../kinds/table.ts";
import { firstIdOf, periodsOf, type TagSettings, type Unguessable } from "../tag/tag.ts";
import { domainOf, idRange, unguessableViolations } from "../../unguessable/domain.ts";
import { TextFormat } from "./format.ts";
import type { FormatSubject } from "./subject.ts";
import { parseTemplate } from "./template.ts";

/** What the texts of a tag depend on. */
interface FormattedTag extends Pick<TagSettings, "kind" | "ceiling" | "format"> {
  readonly unguessable?: Pick<Unguessable, "keyDigits">;
}

/**
 * The format of a tag; undefined when its ids are written as numbers. `offsetAt` knows time zones. Throws
 * INVALID_ARGUMENT for a text that is no template, or a template that does not fit the tag.
 */
export function textFormatOf(
  tag: FormattedTag,
  offsetAt?: FormatSubject["offsetAt"],
): TextFormat | undefined {
  if (tag.format === undefined) return undefined;
  if (specOf(tag.kind).ids === "text")
    throw invalidField(
      "tag.format",
      `must be empty for kind ${tag.kind.kind}: its ids are text`,
      "FIELD_CONFLICT",
    );
  const subject = { ...subjectOf(tag), ...(offsetAt === undefined ? {} : { offsetAt }) };
  return new TextFormat(parseTemplate(tag.format.template), subject);
}

/** What keeps the ids of a tag from being unguessable, by field below `field`; empty when nothing does. */
export function hidingViolations(
  field: string,
  settings: Pick<TagSettings, "ceiling" | "kind" | "order">,
  unguessable: { readonly keyId: number; readonly keyDigits: number },
): FieldViolation[] {
  const { kind, order, ceiling } = settings;
  const why = whyNotHidden(kind);
  if (why === undefined) return unguessableViolations(field, { order, ceiling, unguessable });
  const description = `must be empty for kind ${kind.kind}: ${why}`;
  return [{ field, description, reason: "FIELD_CONFLICT" }];
}

function subjectOf(tag: FormattedTag): FormatSubject {
  const { kind, ceiling, unguessable } = tag;
  if (unguessable !== undefined) {
    const { min, max } = idRange(domainOf(ceiling, unguessable.keyDigits));
    return { firstId: min, lastId: max };
  }
  const { composed } = specOf(kind);
  if (composed?.isShown === true) {
    return { firstId: 0n, lastId: ceiling, snowflake: composed.layout(kind) };
  }
  const ids = { firstId: firstIdOf(kind), lastId: ceiling };
  const periods = periodsOf(kind);
  return periods === undefined ? ids : { ...ids, period: periods.unit };
}
