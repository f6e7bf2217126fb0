import type { ComponentChildren, JSX } from "preact";
import type { Poll } from "../state/polling.ts";
import { errorText } from "../text/error-text.ts";
import { clockText } from "../text/format.ts";
import { t } from "../text/text.ts";
import { Failure } from "./failure.tsx";

/**
 * What a view shows of the server, in each of its states: waiting, slow, failing, not allowed, there, and there but not current
 * any more.
 */
export function Loaded<T>({
  poll,
  children,
}: {
  readonly poll: Poll<T>;
  readonly children: (data: T) => ComponentChildren;
}): JSX.Element {
  const { data, error, at, isSlow } = poll.state.value;
  if (data === undefined) {
    if (error !== undefined) return <Failure error={error} onRetry={poll.refresh} />;
    return (
      <p class="waiting" role="status">
        {isSlow ? t("common.slow") : t("common.loading")}
      </p>
    );
  }
  return (
    <>
      {error !== undefined && (
        <p class="stale" role="status">
          {errorText(error)} {t("common.stale", { time: clockText(at ?? 0) })}
        </p>
      )}
      {children(data)}
    </>
  );
}
