import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { say } from "../parts/toasts.tsx";
import { unansweredSince } from "../state/connection.ts";
import { clockText } from "../text/format.ts";
import { t } from "../text/text.ts";

/** Says that the server does not answer, as long as that is so; and once, that it does again. */
export function Banner(): JSX.Element {
  const since = unansweredSince.value;
  const wasGone = useRef(false);
  useEffect(() => {
    if (since === undefined && wasGone.current) say(t("app.back"));
    wasGone.current = since !== undefined;
  }, [since]);
  return (
    <div role="status">
      {since !== undefined && (
        <p class="banner">{t("app.unreachable", { time: clockText(since) })}</p>
      )}
    </div>
  );
}
