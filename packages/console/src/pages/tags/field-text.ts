import type { Field } from "@idmint/core/kinds";
import { language } from "../../state/settings.ts";
import { t, type TextKey } from "../../text/text.ts";
import { en } from "../../text/en.ts";
import { kindFieldsZh } from "../../text/kind-fields.ts";

/** What a field is called and what it is. The fields of a kind say it themselves, in English. */
export function fieldText(
  path: string,
  help: string,
): { readonly label: string; readonly help: string } {
  const key = `field.${path}`;
  if (key in en) return { label: t(key as TextKey), help: t(`${key}.help` as TextKey) };
  const chinese = language.value.value === "zh" ? kindFieldsZh[path] : undefined;
  return chinese === undefined
    ? { label: plainLabel(path), help }
    : { label: chinese[0], help: chinese[1] };
}

/** `segment.hold_for` is “Hold for”. */
function plainLabel(path: string): string {
  const words = (path.split(".").at(-1) ?? "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function labelOf(path: string, { help }: Pick<Field, "help"> = { help: "" }): string {
  return fieldText(path, help).label;
}
