import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "../../api/client.ts";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Failure } from "../../parts/failure.tsx";
import { useSubmit } from "../../parts/use-submit.ts";
import { t } from "../../text/text.ts";
import type { Listed } from "./listed.ts";
import { Made, type MadeToken } from "./made.tsx";
import { createCommand, EMPTY_FORM, problemsOf, requestOf, type TokenForm } from "./token-form.ts";
import { TokenFields } from "./token-fields.tsx";

interface MakeProps {
  /** The token that the new one is to replace. */
  readonly old: Listed | undefined;
  readonly onMade: () => void;
  readonly onClose: () => void;
}

/**
 * Makes a token, and shows it once.
 *
 * INVARIANT: the secret is in the memory of this view alone, and in the element that shows it: never in the URL, in a storage or
 * in a field, which the browser would fill in again. It is gone with the dialog, and when the page is left.
 */
export function MakeDialog({ old, onMade, onClose }: MakeProps): JSX.Element {
  const first =
    old === undefined
      ? EMPTY_FORM
      : { ...EMPTY_FORM, principal: old.principal, rights: old.rights };
  const form = useSignal<TokenForm>(first);
  const made = useSignal<MadeToken | undefined>(undefined);
  const isTried = useSignal(false);
  const submit = useSubmit();
  useEffect(() => {
    // A page that the browser keeps for "back" must not bring the secret back.
    addEventListener("pagehide", onClose);
    return () => removeEventListener("pagehide", onClose);
  }, []);
  const onSubmit = (): void => {
    isTried.value = true;
    if (problemsOf(form.value).length > 0 || submit.isBusy || made.value !== undefined) return;
    void submit.send(async () => {
      made.value = await make(form.value);
      onMade();
    });
  };
  const shown = made.value;
  const button = (
    <Button look="main" type="submit" disabled={submit.isBusy}>
      {t("tokens.make")}
    </Button>
  );
  // One dialog all the time: one that took the place of another would be closed with it.
  return (
    <Dialog
      title={
        shown === undefined ? t("tokens.new") : t("tokens.made", { principal: shown.principal })
      }
      onClose={onClose}
      onSubmit={onSubmit}
      actions={shown === undefined ? button : undefined}
    >
      {shown === undefined ? (
        <>
          <TokenFields
            form={form.value}
            problems={isTried.value ? problemsOf(form.value) : []}
            onChange={(next) => {
              form.value = next;
            }}
          />
          {submit.error !== undefined && <Failure error={submit.error} isOfChange />}
          <CliLine line={createCommand(form.value)} />
        </>
      ) : (
        <Made made={shown} isReplacing={old !== undefined} />
      )}
    </Dialog>
  );
}

async function make(form: TokenForm): Promise<MadeToken> {
  const answer = await call("AccessService", "createToken", requestOf(form));
  const { text: secret, token, effectiveTime } = answer;
  return { secret, principal: token?.principal ?? "", effectiveTime: effectiveTime ?? "" };
}
