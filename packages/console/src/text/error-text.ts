import type { ApiError } from "../api/errors.ts";
import { en } from "./en.ts";
import { t, type TextKey } from "./text.ts";

/** An error in plain words: our sentence of its reason where there is one, else what the server said. */
export function errorText(error: Pick<ApiError, "reason" | "message">): string {
  const key = `error.${error.reason}`;
  return key in en ? t(key as TextKey) : error.message;
}
