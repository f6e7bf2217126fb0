import type { JSX } from "preact";

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly onChange: (value: T) => void;
}

/** A choice of a few that are all seen. */
export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: ChoiceProps<T>): JSX.Element {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([one, text]) => (
        <button
          key={one}
          type="button"
          class="choice-one"
          aria-pressed={one === value}
          onClick={() => onChange(one)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
