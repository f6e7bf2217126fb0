import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { t } from "../text/text.ts";
import { Button } from "./button.tsx";
import { CliLine } from "./cli-line.tsx";
import { Dialog } from "./dialog.tsx";
import { TextField } from "./field.tsx";
import { Failure } from "./failure.tsx";
import { useSubmit } from "./use-submit.ts";

interface ActionDialogProps {
  readonly title: string;
  /** What will happen, and what it needs to know. */
  readonly children: ComponentChildren;
  /** The same on the command line; `cliLine` makes it. */
  readonly cli: string;
  /** The text of the button that does it. */
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** What must be typed first, such as the name of what will change. */
  readonly confirm?: string | undefined;
  /** Whether what was typed suffices; default: yes. */
  readonly isReady?: boolean;
  /** Does it; the dialog closes when it fulfils, and shows the error when it rejects with ApiError. */
  readonly run: () => Promise<void>;
  readonly onClose: () => void;
}

/** Asks before something is changed, says what it does, and shows why it failed. A change is never tried again by itself. */
export function ActionDialog({
  title,
  children,
  cli,
  verb,
  isDangerous = false,
  confirm,
  isReady = true,
  run,
  onClose,
}: ActionDialogProps): JSX.Element {
  const typed = useSignal("");
  const submit = useSubmit();
  const isConfirmed = confirm === undefined || typed.value === confirm;
  const onSubmit = (): void => {
    if (!isConfirmed || !isReady || submit.isBusy) return;
    void submit.send(async () => {
      await run();
      onClose();
    });
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <Button
          type="submit"
          look={isDangerous ? "danger" : "main"}
          disabled={!isConfirmed || !isReady || submit.isBusy}
        >
          {verb}
        </Button>
      }
    >
      {children}
      {confirm !== undefined && (
        <TextField
          label={t("common.type_to_confirm", { word: confirm })}
          value={typed.value}
          onInput={(value) => {
            typed.value = value;
          }}
        />
      )}
      {submit.error !== undefined && <Failure error={submit.error} isOfChange />}
      <CliLine line={cli} />
    </Dialog>
  );
}
