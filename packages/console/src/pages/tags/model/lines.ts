// What to type for the same at the command line.
import { type Field, flagOf, type KindName, wordOf } from "@idmint/core/kinds";
import { cliLine } from "../../../text/cli.ts";
import { changedPaths } from "./changes.ts";
import { initialValues } from "./draft.ts";
import { commonFields, formFields, type FormValues, groupsOf, kindFields } from "./fields.ts";
import { textOf, TICKED } from "./typed.ts";

type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** `idmint tag create` for what is typed into a form. */
export function createLine(kind: KindName, values: FormValues): string {
  const initial = initialValues(kind);
  const common = commonFields(kind).map(({ path, field }) => [
    commonFlag(path),
    typed(field, values[path]),
  ]);
  const own = kindFields(kind).flatMap(({ path, field }) => {
    const flag = flagOf(path.slice(kind.length + 1), field);
    // What a message has from the beginning is the default.
    const isTyped = (values[path] ?? "") !== (initial[path] ?? "");
    return flag === undefined || !isTyped
      ? []
      : [[flag.replace("--", ""), typed(field, values[path])]];
  });
  const flags = Object.fromEntries([["kind", wordOf(kind)], ...common, ...own]) as Flags;
  const name = values["name"] ?? "";
  return cliLine(["tag", "create", ...(name === "" ? ["NAME"] : [name])], {
    ...flags,
    layout: layoutWord(values, initial),
  });
}

/** The widths of a layout as one flag has them; undefined where they are the default ones. */
function layoutWord(values: FormValues, initial: FormValues): string | undefined {
  const widths = ["time_bits", "data_center_bits", "worker_bits", "sequence_bits"].map(
    (name) => `snowflake.layout.${name}`,
  );
  if (widths.every((path) => (values[path] ?? "") === (initial[path] ?? ""))) return undefined;
  const [time = "", center = "", ...low] = widths.map((path) => (values[path] ?? "").trim() || "0");
  return [time, ...(center === "0" ? [] : [center]), ...low].join("-");
}

function commonFlag(path: string): string {
  return path === "format.template"
    ? "format"
    : (path.split(".").at(-1) ?? "").replaceAll("_", "-");
}

function typed({ type }: Field, value: string | undefined): string | boolean | undefined {
  // Blanks are nothing, as in the form.
  if (value === undefined || value.trim() === "") return undefined;
  if (type === "bool") return value === TICKED;
  if (type === "enum") return wordOf(value);
  return type === "text" ? value : value.trim();
}

/** `idmint tag update` for what was changed; undefined where the command line has no word for it. */
export function updateLine(
  tag: { readonly name: string; readonly etag: string },
  kind: KindName,
  { base, mine }: { readonly base: FormValues; readonly mine: FormValues },
): string | undefined {
  const fields = formFields(kind);
  const flags: Record<string, string | boolean | undefined> = {};
  for (const path of changedPaths(base, mine)) {
    const field = fields.find((one) => one.path === path)?.field;
    if (field === undefined || groupsOf(kind).some((group) => path.startsWith(`${group}.`))) {
      return undefined;
    }
    const isOwn = path.startsWith(`${kind}.`);
    const flag = isOwn ? flagOf(path.slice(kind.length + 1), field)?.slice(2) : commonFlag(path);
    const value = typed(field, mine[path]?.trim() || textOf(field, field.default));
    if (flag === undefined || value === undefined) return undefined;
    flags[flag] = value;
  }
  return cliLine(["tag", "update", tag.name], { ...flags, etag: tag.etag });
}

/** A command about a tag that waits until its change is in effect everywhere. */
export function actionLine(
  action: "advance" | "delete" | "move" | "pause" | "resume" | "return-to-period",
  name: string,
  flags: Flags,
): string {
  return cliLine(["tag", action, name], flags);
}
