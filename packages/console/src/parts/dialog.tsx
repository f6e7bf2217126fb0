import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { t } from "../text/text.ts";
import { Button } from "./button.tsx";

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
  /** Buttons beside "Cancel". */
  readonly actions?: ComponentChildren;
  /** Called when the form in it is sent. */
  readonly onSubmit?: () => void;
}

/** A modal dialog. The browser keeps the focus in it, ends it at Escape, and gives the focus back. */
export function Dialog({ title, children, onClose, actions, onSubmit }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  const submit = (event: Event): void => {
    event.preventDefault();
    onSubmit?.();
  };
  return (
    <dialog ref={element} class="dialog" aria-labelledby={id} onClose={onClose}>
      <form method="dialog" onSubmit={submit}>
        <h2 id={id}>{title}</h2>
        <div class="dialog-body">{children}</div>
        <div class="dialog-actions">
          <Button onClick={onClose}>
            {t(actions === undefined ? "common.close" : "common.cancel")}
          </Button>
          {actions}
        </div>
      </form>
    </dialog>
  );
}
