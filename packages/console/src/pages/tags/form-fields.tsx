import type { Field } from "@idmint/core/kinds";
import { wordOf } from "@idmint/core/kinds";
import type { JSX } from "preact";
import { CheckField, SelectField, TextField } from "../../parts/field.tsx";
import { t } from "../../text/text.ts";
import { fieldText } from "./field-text.ts";
import type { FormField, FormValues } from "./model/fields.ts";
import { textOf, TICKED } from "./model/typed.ts";

interface FieldsProps {
  readonly fields: readonly FormField[];
  readonly values: FormValues;
  /** What is wrong, by path. */
  readonly errors: ReadonlyMap<string, readonly string[]>;
  readonly onInput: (path: string, value: string) => void;
}

/** The controls of a form's fields, each made of its row in the table. */
export function FormFields({ fields, values, errors, onInput }: FieldsProps): JSX.Element {
  return (
    <div class="form-grid">
      {fields.map((one) => (
        <Control
          key={one.path}
          {...one}
          value={values[one.path] ?? ""}
          error={errors.get(one.path)?.join(" ")}
          onInput={(value) => onInput(one.path, value)}
        />
      ))}
    </div>
  );
}

interface ControlProps extends FormField {
  readonly value: string;
  readonly error: string | undefined;
  readonly onInput: (value: string) => void;
}

function Control({ path, field, value, error, onInput }: ControlProps): JSX.Element {
  const { label, help } = fieldText(path, field.help);
  const shared = { label, help: helpOf(field, help), error };
  if (field.enum !== undefined) {
    return (
      <SelectField
        {...shared}
        value={value}
        options={[
          ["", emptyText(field)],
          ...field.enum.values.map((one) => [one, wordOf(one)] as const),
        ]}
        onChange={onInput}
      />
    );
  }
  if (field.type === "bool") {
    return (
      <CheckField
        {...shared}
        isChecked={value === TICKED}
        onChange={(isOn) => onInput(isOn ? TICKED : "")}
      />
    );
  }
  const isNumber = field.type === "id" || field.type === "int32" || field.type === "uint32";
  return (
    <TextField
      {...shared}
      value={value}
      placeholder={field.default === undefined ? undefined : textOf(field, field.default)}
      inputMode={isNumber ? "numeric" : "text"}
      onInput={onInput}
    />
  );
}

function helpOf(field: Field, help: string): string {
  const { range } = field;
  if (range === undefined || field.enum !== undefined) return help;
  const [min, max] = range.map((bound) => textOf(field, bound));
  return `${help}, ${t("form.range", { min: min ?? "", max: max ?? "" })}`;
}

function emptyText(field: Field): string {
  if (field.default === undefined) return t("common.none");
  return t("form.default", { value: wordOf(textOf(field, field.default)) });
}
