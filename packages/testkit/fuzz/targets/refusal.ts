import { CODE_OF_REASON, IdmintError } from "@idmint/core";

/** What readers must not show of what they read. */
export const SECRET = "5ecret0f5ome0ne";

const MAX_TEXT = 64 * 1_024;

/** What is wrong with what a reader threw; undefined: nothing, it is an INVALID_ARGUMENT that names places. */
export function faultOfThrown(thrown: unknown): string | undefined {
  if (!(thrown instanceof IdmintError)) throw thrown;
  const { code, reason, message, violations } = thrown;
  if (CODE_OF_REASON[reason] !== code || code !== "INVALID_ARGUMENT") return `${code}: ${message}`;
  if (message.length > MAX_TEXT) return `a text of ${message.length} letters`;
  // The name of an option that there is not is shown as it was written.
  if (message.replaceAll(/[^;]* is not an option/g, "").includes(SECRET))
    return `a text that shows a secret: ${message}`;
  if (violations.length === 0) return `a refusal without a place: ${message}`;
  const nameless = violations.find(({ field, description }) => field === "" || description === "");
  return nameless === undefined ? undefined : `a violation without a name or a text: ${message}`;
}
