import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { t } from "../text/text.ts";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
}

const SHOWN_MS = 6_000;
const MOST = 4;

const shown = signal<readonly Toast[]>([]);
let last = 0;

/** Says something in passing. An error stays until somebody closes it. */
export function say(text: string, { isError = false }: { readonly isError?: boolean } = {}): void {
  last += 1;
  const id = last;
  shown.value = [...shown.value, { id, text, isError }].slice(-MOST);
  if (!isError) setTimeout(() => close(id), SHOWN_MS);
}

function close(id: number): void {
  shown.value = shown.value.filter((one) => one.id !== id);
}

/** The regions are always there: screen readers hear only what changes in a region that they know. */
export function Toasts(): JSX.Element {
  return (
    <div class="toasts">
      <div role="status">{shown.value.filter(({ isError }) => !isError).map(oneToast)}</div>
      <div role="alert">{shown.value.filter(({ isError }) => isError).map(oneToast)}</div>
    </div>
  );
}

function oneToast({ id, text, isError }: Toast): JSX.Element {
  return (
    <div key={id} class={`toast${isError ? " bad" : ""}`}>
      <span>{text}</span>
      <button
        type="button"
        class="toast-close"
        aria-label={t("common.close")}
        onClick={() => close(id)}
      >
        ×
      </button>
    </div>
  );
}
