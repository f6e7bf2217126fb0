import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { timeText } from "../../text/format.ts";
import { t } from "../../text/text.ts";

/** A token that was made a moment ago. */
export interface MadeToken {
  readonly secret: string;
  readonly principal: string;
  readonly effectiveTime: string;
}

/** Shows a token: the only time. */
export function Made({
  made: { secret, principal, effectiveTime },
  isReplacing,
}: {
  readonly made: MadeToken;
  readonly isReplacing: boolean;
}): JSX.Element {
  const isCopied = useSignal(false);
  const shown = useRef<HTMLElement>(null);
  // The button that had the focus is gone.
  useEffect(() => shown.current?.focus(), []);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(secret);
    isCopied.value = true;
  };
  return (
    <>
      <p>{t("tokens.made.text")}</p>
      <div class="cli-row">
        <code ref={shown} class="secret" tabindex={0}>
          {secret}
        </code>
        {navigator.clipboard !== undefined && (
          <Button look="main" onClick={() => void copy()}>
            {t("common.copy")}
          </Button>
        )}
      </div>
      <p role="status">{isCopied.value ? t("common.copied") : ""}</p>
      <p>{t("tokens.made.effective", { time: timeText(effectiveTime) })}</p>
      {isReplacing && <p>{t("tokens.made.replace", { principal })}</p>}
    </>
  );
}
