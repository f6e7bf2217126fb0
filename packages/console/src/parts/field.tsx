import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  /** What it means or what is allowed. */
  readonly help?: ComponentChildren;
  /** What is wrong with it. */
  readonly error?: string | undefined;
  /** A box stands before its label. */
  readonly look?: "check";
  readonly children: (ids: FieldIds) => JSX.Element;
}

/** What the control of a field carries, so that screen readers say its help and error. */
interface FieldIds {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean | undefined;
}

/** A control with its label, help and error. */
export function Field({ label, help, error, look, children }: FieldProps): JSX.Element {
  const id = useId();
  const helpId = help === undefined ? "" : `${id}-help`;
  const errorId = error === undefined ? "" : `${id}-error`;
  const described = `${helpId} ${errorId}`.trim();
  return (
    <div class={look === undefined ? "field" : `field ${look}`}>
      <label for={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described === "" ? undefined : described,
        "aria-invalid": error === undefined ? undefined : true,
      })}
      {help !== undefined && (
        <p class="field-help" id={helpId}>
          {help}
        </p>
      )}
      {error !== undefined && (
        <p class="field-error" id={errorId}>
          {error}
        </p>
      )}
    </div>
  );
}

type InputType = "text" | "password" | "search" | "number";

interface InputProps extends Omit<FieldProps, "children"> {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: InputType;
  readonly placeholder?: string | undefined;
  readonly required?: boolean;
  readonly autoFocus?: boolean;
  readonly maxLength?: number;
  readonly inputMode?: "text" | "numeric" | "decimal";
}

/** A field of one line of text. */
export function TextField({
  value,
  onInput,
  type = "text",
  placeholder,
  required,
  autoFocus,
  maxLength,
  inputMode,
  ...field
}: InputProps): JSX.Element {
  return (
    <Field {...field}>
      {(ids) => (
        <input
          {...ids}
          class="input"
          {...typeOf(type)}
          value={value}
          placeholder={placeholder}
          required={required}
          autoFocus={autoFocus}
          maxLength={maxLength}
          inputMode={inputMode}
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => onInput(currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Preact has a type of attributes for each type of input; a variable fits none of them. */
function typeOf(type: InputType): { readonly type: "text" } {
  return { type: type as "text" };
}

interface SelectProps<T extends string> extends Omit<FieldProps, "children"> {
  readonly value: T;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly onChange: (value: T) => void;
}

/** A choice of a few. */
export function SelectField<T extends string>({
  value,
  options,
  onChange,
  ...field
}: SelectProps<T>): JSX.Element {
  return (
    <Field {...field}>
      {(ids) => (
        <select
          {...ids}
          class="input"
          value={value}
          onChange={({ currentTarget }) => onChange(currentTarget.value as T)}
        >
          {options.map(([one, text]) => (
            <option key={one} value={one}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckProps extends Omit<FieldProps, "children"> {
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

/** A box to tick. */
export function CheckField({ isChecked, onChange, ...field }: CheckProps): JSX.Element {
  return (
    <Field {...field} look="check">
      {(ids) => (
        <input
          {...ids}
          type="checkbox"
          checked={isChecked}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        />
      )}
    </Field>
  );
}
