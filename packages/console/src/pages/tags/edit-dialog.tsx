import { useSignal } from "@preact/signals";
import type { KindName } from "@idmint/core/kinds";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import type { RequestOf } from "../../api/json.ts";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Failure } from "../../parts/failure.tsx";
import { say } from "../../parts/toasts.tsx";
import { t } from "../../text/text.ts";
import type { TagDialogProps } from "./about-tag.ts";
import { Conflict } from "./conflict.tsx";
import { labelOf } from "./field-text.ts";
import { FormFields } from "./form-fields.tsx";
import { changedPaths, editFields, type EditField, onTopOf, updateOf } from "./model/changes.ts";
import { draftOf } from "./model/draft.ts";
import type { FormValues } from "./model/fields.ts";
import { updateLine } from "./model/lines.ts";
import { formOfTag, kindOf, type TagJson } from "./model/tag-values.ts";
import { placed } from "./model/violations.ts";

interface EditProps extends TagDialogProps {
  /** The tag as it is now, while `tag` is what it was when the dialog opened. */
  readonly present: TagJson;
}

export function EditDialog(props: EditProps): JSX.Element | null {
  const kind = kindOf(props.tag);
  return kind === undefined ? null : <EditForm {...props} kind={kind} />;
}

/** Changes settings. Where somebody else was faster, both are compared, and nothing is saved before somebody chose. */
function EditForm({
  tag,
  present,
  kind,
  onClose,
}: EditProps & { readonly kind: KindName }): JSX.Element {
  const opened = useSignal(tag);
  const mine = useSignal(formOfTag(tag, kind));
  const error = useSignal<ApiError | undefined>(undefined);
  const isBusy = useSignal(false);
  const base = formOfTag(opened.value, kind);
  const forms = { base, mine: mine.value };
  const fields = editFields(opened.value, kind);
  const changed = changedPaths(base, mine.value);
  const isConflict = present.etag !== opened.value.etag;
  const faults = draftOf(kind, mine.value).faults;
  const set = (path: string, value: string): void => {
    mine.value = { ...mine.value, [path]: value };
    error.value = undefined;
  };
  const submit = async (): Promise<void> => {
    if (isBusy.value || isConflict || changed.length === 0 || faults.size > 0) return;
    isBusy.value = true;
    error.value = await save(updateOf(opened.value, kind, forms));
    isBusy.value = false;
    if (error.value === undefined) {
      say(t("edit.done", { name: tag.name }));
      onClose();
    }
  };
  const choose = (next: FormValues): void => {
    opened.value = present;
    mine.value = next;
    error.value = undefined;
  };
  const line = updateLine(opened.value, kind, forms);
  return (
    <Dialog
      title={t("edit.title", { name: tag.name })}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <Button
          type="submit"
          look="main"
          disabled={isBusy.value || isConflict || changed.length === 0 || faults.size > 0}
        >
          {t("edit.save")}
        </Button>
      }
    >
      {isConflict ? (
        <Conflict
          base={base}
          mine={mine.value}
          theirs={formOfTag(present, kind)}
          onKeep={() => choose(onTopOf(base, mine.value, formOfTag(present, kind)))}
          onDrop={() => choose(formOfTag(present, kind))}
        />
      ) : (
        <Fields fields={fields} mine={mine.value} kind={kind} error={error.value} onInput={set} />
      )}
      <Line isChanged={changed.length > 0} line={line} />
    </Dialog>
  );
}

function Line({
  isChanged,
  line,
}: {
  readonly isChanged: boolean;
  readonly line: string | undefined;
}): JSX.Element {
  if (!isChanged) return <p class="soft">{t("edit.nothing")}</p>;
  return line === undefined ? <p class="soft">{t("edit.no_line")}</p> : <CliLine line={line} />;
}

/** Sends a change; answers why it failed. */
async function save(update: ReturnType<typeof updateOf>): Promise<ApiError | undefined> {
  try {
    // JSON has a mask as one text.
    await call(
      "TagService",
      "updateTag",
      update as unknown as RequestOf<"TagService", "updateTag">,
    );
    return undefined;
  } catch (thrown) {
    if (thrown instanceof ApiError) return thrown;
    throw thrown;
  }
}

interface FieldsProps {
  readonly fields: readonly EditField[];
  readonly mine: FormValues;
  readonly kind: KindName;
  readonly error: ApiError | undefined;
  readonly onInput: (path: string, value: string) => void;
}

function Fields({ fields, mine, kind, error, onInput }: FieldsProps): JSX.Element {
  const paths = fields.map(({ path }) => path);
  const { byPath, others } = placed(error?.violations ?? [], paths);
  const faults = [...draftOf(kind, mine).faults].map(
    ([path, fault]) => [path, [t(`form.fault.${fault}`)]] as const,
  );
  const isPlaced = error !== undefined && error.violations.length > 0 && others.length === 0;
  const fixed = fields.filter(({ why }) => why !== undefined);
  return (
    <>
      <FormFields
        fields={fields.filter(({ why }) => why === undefined)}
        values={mine}
        errors={new Map([...byPath, ...faults])}
        onInput={onInput}
      />
      {error !== undefined && !isPlaced && <Failure error={error} isOfChange />}
      {fixed.length > 0 && (
        <details>
          <summary>{t("edit.fixed")}</summary>
          <ul class="fixed">
            {fixed.map(({ path, field, why }) => (
              <li key={path}>
                <span>{labelOf(path, field)}</span>{" "}
                <span class="foreign mono">
                  {mine[path] === "" ? t("common.none") : mine[path]}
                </span>{" "}
                <span class="soft">{t(`fixed.${why ?? "never"}`)}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
