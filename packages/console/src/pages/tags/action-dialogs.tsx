// The actions on a tag that want to know something first.
import { useSignal } from "@preact/signals";
import { MAX_RAISE } from "@idmint/core/server";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { ActionDialog } from "../../parts/action-dialog.tsx";
import { CheckField, TextField } from "../../parts/field.tsx";
import { say } from "../../parts/toasts.tsx";
import { countText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import { memoryText, redisServerOfTag, type TagDialogProps } from "./about-tag.ts";
import { actionLine } from "./model/lines.ts";

const WHOLE = /^\d{1,19}$/;

export function AdvanceDialog({ tag, onClose }: TagDialogProps): JSX.Element {
  const { name, etag, floor, ceiling } = tag;
  const typed = useSignal("");
  const isLarge = useSignal(false);
  const text = typed.value.trim();
  const by = WHOLE.test(text) ? BigInt(text) - BigInt(floor) : undefined;
  const mustAllow = by !== undefined && by > MAX_RAISE;
  const request = { name, floor: text, etag, allowLargeRaise: isLarge.value };
  const flags = { floor: text, etag, "allow-large-raise": isLarge.value, yes: true, wait: true };
  return (
    <ActionDialog
      title={t("advance.title", { name })}
      cli={actionLine("advance", name, flags)}
      verb={t("tag.advance")}
      isDangerous
      confirm={name}
      isReady={by !== undefined}
      run={async () => {
        const { raised } = await call("TagService", "advanceTag", request);
        say(raised ? t("advance.done", { floor: text }) : t("advance.there"));
      }}
      onClose={onClose}
    >
      <p>{t("advance.text", { memory: memoryText(tag) })}</p>
      <TextField
        label={t("advance.floor")}
        help={t("advance.floor_help", { floor, ceiling })}
        error={text === "" || by !== undefined ? undefined : t("form.fault.number")}
        value={typed.value}
        inputMode="numeric"
        autoFocus
        onInput={(value) => {
          typed.value = value;
        }}
      />
      {by !== undefined && by > 0n && <p>{t("advance.by", { count: countText(String(by)) })}</p>}
      {(mustAllow || isLarge.value) && (
        <CheckField
          label={t("advance.large", { count: countText(String(MAX_RAISE)) })}
          isChecked={isLarge.value}
          onChange={(isOn) => {
            isLarge.value = isOn;
          }}
        />
      )}
    </ActionDialog>
  );
}

export function ReturnDialog({ tag, onClose }: TagDialogProps): JSX.Element {
  const { name, etag, period: present } = tag;
  const typedPeriod = useSignal("");
  const typedFloor = useSignal("");
  const [period, floor] = [typedPeriod.value.trim(), typedFloor.value.trim()];
  const isNumber = floor === "" || WHOLE.test(floor);
  const request = { name, period, etag, ...(floor === "" ? {} : { floor }) };
  return (
    <ActionDialog
      title={t("return.title", { name })}
      cli={actionLine("return-to-period", name, { period, floor, etag, yes: true })}
      verb={t("tag.return")}
      isDangerous
      confirm={name}
      isReady={period !== "" && isNumber}
      run={async () => {
        await call("TagService", "returnToPeriod", request);
        say(t("return.done", { name, period }));
      }}
      onClose={onClose}
    >
      <p>{t("return.text")}</p>
      <TextField
        label={t("return.period")}
        help={t("return.period_help", { period: present })}
        value={typedPeriod.value}
        autoFocus
        onInput={(value) => {
          typedPeriod.value = value;
        }}
      />
      <TextField
        label={t("return.floor")}
        help={t("return.floor_help")}
        error={isNumber ? undefined : t("form.fault.number")}
        value={typedFloor.value}
        inputMode="numeric"
        onInput={(value) => {
          typedFloor.value = value;
        }}
      />
    </ActionDialog>
  );
}

export function MoveDialog({ tag, onClose }: TagDialogProps): JSX.Element {
  const { name, etag } = tag;
  const typed = useSignal("");
  const isForced = useSignal(false);
  const to = typed.value.trim();
  const force = isForced.value;
  return (
    <ActionDialog
      title={t("move.title", { name })}
      cli={actionLine("move", name, { to, force, etag })}
      verb={t("tag.move")}
      isDangerous
      confirm={name}
      isReady={to !== ""}
      run={async () => {
        await call("TagService", "moveTag", { name, redisServer: to, force, etag });
        say(t("move.done", { name, server: to }));
      }}
      onClose={onClose}
    >
      <p>{t("move.text")}</p>
      <TextField
        label={t("move.to")}
        help={t("move.to_help", { server: redisServerOfTag(tag) ?? "" })}
        value={typed.value}
        autoFocus
        onInput={(value) => {
          typed.value = value;
        }}
      />
      <CheckField
        label={t("move.force")}
        isChecked={force}
        onChange={(isOn) => {
          isForced.value = isOn;
        }}
      />
    </ActionDialog>
  );
}
