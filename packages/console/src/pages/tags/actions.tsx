import { isCounted } from "@idmint/core/kinds";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import { ActionDialog } from "../../parts/action-dialog.tsx";
import { say } from "../../parts/toasts.tsx";
import { may } from "../../state/sign-in.ts";
import { t } from "../../text/text.ts";
import { AdvanceDialog, MoveDialog, ReturnDialog } from "./action-dialogs.tsx";
import { hasPeriods, memoryText, redisServerOfTag, type TagDialogProps } from "./about-tag.ts";
import { EditDialog } from "./edit-dialog.tsx";
import { actionLine } from "./model/lines.ts";
import { kindOf, type TagJson } from "./model/tag-values.ts";
import { TestDialog } from "./test-dialog.tsx";

export type ActionName =
  | "advance"
  | "delete"
  | "edit"
  | "move"
  | "pause"
  | "resume"
  | "return"
  | "test";

/** What the caller may do with a tag now. What it may not, or what makes no sense, is not offered. */
export function actionsOf(tag: TagJson): readonly ActionName[] {
  const { name, state, period } = tag;
  if (state === "TAG_STATE_DELETED") return [];
  const isPaused = state === "TAG_STATE_PAUSED";
  const kind = kindOf(tag);
  const own: readonly ActionName[] = may("issue", name) && !isPaused ? ["test"] : [];
  if (!may("admin", name)) return own;
  return [
    ...own,
    ...(kind === undefined ? [] : (["edit"] as const)),
    isPaused ? "resume" : "pause",
    ...(kind === undefined || isCounted({ kind }) ? (["advance"] as const) : []),
    ...(hasPeriods(tag) && period !== "" ? (["return"] as const) : []),
    ...(redisServerOfTag(tag) === undefined ? [] : (["move"] as const)),
    "delete",
  ];
}

/**
 * The dialog of an action. It is about the tag as it was when the dialog opened: the etag of then makes the server refuse where
 * somebody has changed the tag since.
 */
export function TagDialog({
  action,
  tag,
  onClose,
}: TagDialogProps & { readonly action: ActionName }): JSX.Element {
  const opened = useRef(tag).current;
  const props = { tag: opened, onClose };
  switch (action) {
    case "test":
      return <TestDialog {...props} />;
    case "edit":
      return <EditDialog {...props} present={tag} />;
    case "pause":
      return <PauseDialog {...props} />;
    case "resume":
      return <ResumeDialog {...props} />;
    case "advance":
      return <AdvanceDialog {...props} />;
    case "return":
      return <ReturnDialog {...props} />;
    case "move":
      return <MoveDialog {...props} />;
    case "delete":
      return <DeleteDialog {...props} />;
    default:
      return action satisfies never;
  }
}

function PauseDialog({ tag, onClose }: TagDialogProps): JSX.Element {
  const { name, etag } = tag;
  return (
    <ActionDialog
      title={t("pause.title", { name })}
      cli={actionLine("pause", name, { etag, wait: true })}
      verb={t("tag.pause")}
      isDangerous
      confirm={name}
      run={async () => {
        await call("TagService", "pauseTag", { name, etag });
        say(t("pause.done", { name }));
      }}
      onClose={onClose}
    >
      <p>{t("pause.text", { memory: memoryText(tag) })}</p>
    </ActionDialog>
  );
}

function ResumeDialog({ tag: { name, etag }, onClose }: TagDialogProps): JSX.Element {
  return (
    <ActionDialog
      title={t("resume.title", { name })}
      cli={actionLine("resume", name, { etag })}
      verb={t("tag.resume")}
      confirm={name}
      run={async () => {
        await call("TagService", "resumeTag", { name, etag });
        say(t("resume.done", { name }));
      }}
      onClose={onClose}
    >
      <p>{t("resume.text")}</p>
    </ActionDialog>
  );
}

function DeleteDialog({ tag: { name, etag }, onClose }: TagDialogProps): JSX.Element {
  return (
    <ActionDialog
      title={t("delete.title", { name })}
      cli={actionLine("delete", name, { etag, yes: true, wait: true })}
      verb={t("tag.delete")}
      isDangerous
      confirm={name}
      run={async () => {
        await call("TagService", "deleteTag", { name, etag });
        say(t("delete.done", { name }));
      }}
      onClose={onClose}
    >
      <p>{t("delete.text")}</p>
    </ActionDialog>
  );
}
