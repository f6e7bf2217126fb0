import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Failure } from "../../parts/failure.tsx";
import { TextField } from "../../parts/field.tsx";
import { hrefOf } from "../../state/route-state.ts";
import { cliLine } from "../../text/cli.ts";
import { t } from "../../text/text.ts";
import type { TagDialogProps } from "./about-tag.ts";

/** Issues an id, and stays open so that it can be read and more can be had. */
export function TestDialog({ tag, onClose }: TagDialogProps): JSX.Element {
  const { name } = tag;
  const typed = useSignal("");
  const issued = useSignal<string | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const isBusy = useSignal(false);
  const version = tag.uuid?.version ?? 0;
  const isOfName = version === 3 || version === 5;
  const submit = async (): Promise<void> => {
    if (isBusy.value || (isOfName && typed.value === "")) return;
    isBusy.value = true;
    error.value = undefined;
    try {
      const { id, text } = await call("IdService", "generateId", { tag: name, name: typed.value });
      issued.value = text === "" ? id : text;
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      error.value = thrown;
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <Dialog
      title={t("test.title", { name })}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <Button type="submit" look="main" disabled={isBusy.value}>
          {t("test.issue")}
        </Button>
      }
    >
      <p>{t("test.text")}</p>
      {isOfName && (
        <TextField
          label={t("test.name")}
          value={typed.value}
          required
          autoFocus
          onInput={(value) => {
            typed.value = value;
          }}
        />
      )}
      <div role="status">
        {issued.value !== undefined && (
          <p>
            {t("test.result")} <output class="mono foreign">{issued.value}</output>{" "}
            <a href={hrefOf("ids", {}, { tag: name, id: issued.value })}>{t("test.decode")}</a>
          </p>
        )}
      </div>
      {error.value !== undefined && <Failure error={error.value} />}
      <CliLine line={cliLine(["id", "next", name], { name: typed.value })} />
    </Dialog>
  );
}
