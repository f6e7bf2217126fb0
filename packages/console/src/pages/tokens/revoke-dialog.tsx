import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { ActionDialog } from "../../parts/action-dialog.tsx";
import { t } from "../../text/text.ts";
import type { Listed } from "./listed.ts";
import { revokeCommand } from "./token-form.ts";

interface RevokeProps {
  readonly token: Listed;
  /** Whether it is what this session shows. */
  readonly isOwn: boolean;
  /** With the time from which on it is worthless. */
  readonly onRevoked: (effectiveTime: string) => void;
  readonly onClose: () => void;
}

/** Makes a token worthless, after its principal's name was typed. */
export function RevokeDialog({ token, isOwn, onRevoked, onClose }: RevokeProps): JSX.Element {
  // As it was when the dialog was opened: what is typed for one token is never done to another.
  const { tokenId: id, principal } = useSignal(token).value;
  return (
    <ActionDialog
      title={t("tokens.revoke.title", { principal })}
      cli={revokeCommand(id)}
      verb={t("tokens.revoke")}
      isDangerous
      confirm={principal}
      run={async () => {
        const { effectiveTime } = await call("AccessService", "revokeToken", { tokenId: id });
        onRevoked(effectiveTime ?? "");
      }}
      onClose={onClose}
    >
      <p>{t("tokens.revoke.text", { id })}</p>
      <p>{t(isOwn ? "tokens.revoke.own" : "tokens.revoke.held")}</p>
    </ActionDialog>
  );
}
