import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { specOf } from "@idmint/core/kinds";
import { call } from "../../api/client.ts";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Failure } from "../../parts/failure.tsx";
import { TextField } from "../../parts/field.tsx";
import { useSubmit } from "../../parts/use-submit.ts";
import { hrefOf } from "../../state/route-state.ts";
import { cliLine } from "../../text/cli.ts";
import { t } from "../../text/text.ts";
import type { TagDialogProps } from "./about-tag.ts";
import { ofSettings } from "./model/tag-values.ts";

/** Issues an id, and stays open so that it can be read and more can be had. */
export function TestDialog({ tag, onClose }: TagDialogProps): JSX.Element {
  const { name } = tag;
  const typed = useSignal("");
  const issued = useSignal<string | undefined>(undefined);
  const submit = useSubmit();
  const isOfName = ofSettings(tag, (settings) => specOf(settings).isOfNames(settings)) === true;
  const onSubmit = (): void => {
    if (submit.isBusy || (isOfName && typed.value === "")) return;
    void submit.send(async () => {
      const { id, text } = await call("IdService", "generateId", { tag: name, name: typed.value });
      issued.value = text === "" ? id : text;
    });
  };
  return (
    <Dialog
      title={t("test.title", { name })}
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <Button type="submit" look="main" disabled={submit.isBusy}>
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
      {submit.error !== undefined && <Failure error={submit.error} />}
      <CliLine line={cliLine(["id", "next", name], { name: typed.value })} />
    </Dialog>
  );
}
