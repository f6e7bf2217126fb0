import { answered, unanswered } from "../state/connection.ts";
import { notBelieved, token } from "../state/session.ts";
import { ApiError, errorOfBody, garbled, tooLate, unreachable } from "./errors.ts";
import type { MethodName, RequestOf, ResponseOf, ServiceName } from "./json.ts";
import { waitBeforeRetry } from "./retry.ts";

const READ_MS = 10_000;
/** A change may wait for the store, and for other servers to follow it. */
const CHANGE_MS = 30_000;
/** More than any answer of the API is. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;
/** By their names in the API, methods that begin so change nothing and may be asked twice. */
const READS = /^(?:get|list|lookup|decode)/;

export interface CallOptions {
  /** Aborts the call; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
}

/** Calls a unary method. Rejects with ApiError; a read that failed for a moment is made again, a change never. */
export async function call<S extends ServiceName, M extends MethodName<S>>(
  service: S,
  method: M,
  request: RequestOf<S, M>,
  { signal, timeoutMs }: CallOptions = {},
): Promise<ResponseOf<S, M>> {
  const isRead = READS.test(method);
  const boundMs = timeoutMs ?? (isRead ? READ_MS : CHANGE_MS);
  const end = performance.now() + boundMs;
  for (let attempt = 1; ; attempt++) {
    const leftMs = Math.max(1, Math.ceil(end - performance.now()));
    try {
      return (await once(service, method, request, leftMs, signal)) as ResponseOf<S, M>;
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      const left = end - performance.now();
      const wait = isRead ? waitBeforeRetry(thrown, attempt, left, Math.random()) : undefined;
      if (wait === undefined) throw thrown;
      await pause(wait, signal);
    }
  }
}

async function once(
  service: string,
  method: string,
  request: unknown,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const late = AbortSignal.timeout(ms);
  const shown = token.value;
  try {
    const response = await fetch(`/idmint.v1.${service}/${capital(method)}`, {
      method: "POST",
      headers: headers(ms, shown),
      body: JSON.stringify(request),
      signal: signal === undefined ? late : AbortSignal.any([late, signal]),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    const body = await bodyOf(response);
    answered();
    if (response.ok) return body;
    const error = errorOfBody(body) ?? garbled(response.status);
    if (error.code === "unauthenticated") notBelieved(shown);
    throw error;
  } catch (thrown) {
    if (signal?.aborted === true) throw signal.reason;
    const error = thrown instanceof ApiError ? thrown : late.aborted ? tooLate(ms) : unreachable();
    if (error.isNoAnswer) unanswered();
    throw error;
  }
}

function headers(ms: number, shown: string): Record<string, string> {
  return {
    "content-type": "application/json",
    "connect-protocol-version": "1",
    "connect-timeout-ms": String(ms),
    ...(shown === "" ? {} : { authorization: `Bearer ${shown}` }),
  };
}

async function bodyOf(response: Response): Promise<unknown> {
  const length = Number(response.headers.get("content-length") ?? 0);
  if (length > MAX_ANSWER_BYTES) throw garbled(response.status);
  const text = await response.text();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw garbled(response.status);
  }
}

function capital(method: string): string {
  return method.charAt(0).toUpperCase() + method.slice(1);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
