import { invalidField } from "../../errors.ts";
import { specOf } from "../../kinds/table.ts";
import { firstIdOf, periodsOf, type TagSettings, type Unguessable } from "../tag/tag.ts";
import { domainOf, idRange } from "../../unguessable/domain.ts";
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

function subjectOf(tag: FormattedTag): FormatSubject {
  const { kind, ceiling, unguessable } = tag;
  if (unguessable !== undefined) {
    const { min, max } = idRange(domainOf(ceiling, unguessable.keyDigits));
    return { firstId: min, lastId: max };
  }
  if (kind.kind === "snowflake") return { firstId: 0n, lastId: ceiling, snowflake: kind.layout };
  const ids = { firstId: firstIdOf(kind), lastId: ceiling };
  const periods = periodsOf(kind);
  return periods === undefined ? ids : { ...ids, period: periods.unit };
}
