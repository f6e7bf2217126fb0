/** Delivers a body. Rejects with an error whose text may be logged. A body that was aborted may have arrived. */
export type Deliver = (body: string, signal: AbortSignal) => Promise<void>;

/**
 * An HTTP receiver of alarms. It has taken one when it answers with 200 … 299. Redirects are not followed: the token is
 * for the receiver that was configured. Neither the URL, which may hold a secret of its own, nor the token gets into
 * an error.
 */
export function webhook(options: {
  readonly url: string;
  readonly token: string | undefined;
  readonly timeoutMs: number;
}): Deliver {
  const { url, token, timeoutMs } = options;
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  const post = async (signal: AbortSignal, body: string): Promise<Response> => {
    const options = { method: "POST", headers, body, redirect: "manual", signal } as const;
    const response = await fetch(url, options);
    // The rest of the answer is not read, however long it is.
    await response.body?.cancel();
    return response;
  };
  return async (body, signal) => {
    const late = AbortSignal.timeout(timeoutMs);
    const answer = await post(AbortSignal.any([late, signal]), body).catch(
      (thrown: unknown) =>
        new Error(
          late.aborted
            ? `no answer within ${timeoutMs} ms`
            : `it cannot be reached (${codeOf(thrown)})`,
        ),
    );
    if (answer instanceof Error) throw answer;
    if (!answer.ok) throw new Error(`it answered with HTTP status ${answer.status}`);
  };
}

/** What went wrong, as a code. The whole error may repeat the address and the request. */
function codeOf(thrown: unknown): string {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 4; depth++) {
    if ("code" in error && typeof error.code === "string") return error.code;
    if (error.cause === undefined) return error.name;
    error = error.cause;
  }
  return "unknown";
}
