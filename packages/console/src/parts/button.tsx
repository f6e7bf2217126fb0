import type { ComponentChildren, JSX } from "preact";

interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onClick?: () => void;
  readonly look?: "plain" | "main" | "danger" | "quiet" | "small";
  readonly type?: "button" | "submit";
  readonly disabled?: boolean;
  /** What it does, where its text alone does not say. */
  readonly label?: string;
}

export function Button({
  children,
  onClick,
  look = "plain",
  type = "button",
  disabled = false,
  label,
}: ButtonProps): JSX.Element {
  return (
    <button
      type={type}
      class={`button ${look}`}
      disabled={disabled}
      aria-label={label}
      onClick={onClick}
    >
      {children}
    </button>
  );
}
