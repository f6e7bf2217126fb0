import type { JSX } from "preact";
import type { ApiError } from "../api/errors.ts";
import { errorText } from "../text/error-text.ts";
import { t } from "../text/text.ts";
import { Button } from "./button.tsx";

/** An error where the answer would stand, with what the server said besides. */
export function Failure({
  error,
  onRetry,
  isOfChange = false,
}: {
  readonly error: ApiError;
  readonly onRetry?: () => void;
  /** A change that was not answered may have been made. */
  readonly isOfChange?: boolean;
}): JSX.Element {
  const text = errorText(error);
  const isForbidden = error.code === "permission_denied";
  return (
    <div class={`failure${isForbidden ? " idle" : ""}`} role="alert">
      <p class="failure-text">{isForbidden ? t("common.not_allowed") : text}</p>
      {(isForbidden || text !== error.message) && <p>{error.message}</p>}
      {isOfChange && error.isOutcomeUnknown && <p>{t("error.unknown_outcome")}</p>}
      {error.violations.length > 0 && (
        <ul>
          {error.violations.map(({ field, description }) => (
            <li key={field}>
              <code>{field}</code> {description}
            </li>
          ))}
        </ul>
      )}
      <p class="failure-reason">
        <code>{error.reason === "" ? error.code : error.reason}</code>
        {onRetry !== undefined && !isForbidden && (
          <Button onClick={onRetry}>{t("common.retry")}</Button>
        )}
      </p>
    </div>
  );
}
