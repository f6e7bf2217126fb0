import { SNOWFLAKE_PRESETS } from "@idmint/core";
import { valuesOf } from "@idmint/core/kinds";
import { plainSettings, type FormValues, kindFields } from "./fields.ts";
import { textOf } from "./typed.ts";

type PresetName = keyof typeof SNOWFLAKE_PRESETS;

/** Layouts by name. */
export const PRESETS: readonly PresetName[] = Object.keys(SNOWFLAKE_PRESETS) as PresetName[];

/** What a layout has typed into the form of a snowflake tag. */
export function presetValues(name: PresetName): FormValues {
  const settings = plainSettings("snowflake");
  const layout = SNOWFLAKE_PRESETS[name];
  const below = valuesOf({ ...settings, layout })["layout"] as Readonly<Record<string, number>>;
  return Object.fromEntries(
    kindFields("snowflake").flatMap(({ path, field }) => {
      const [, group, own = ""] = path.split(".");
      return group === "layout" && own !== "" ? [[path, textOf(field, below[own])]] : [];
    }),
  );
}
