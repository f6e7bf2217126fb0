import type { HttpAnswer } from "./route.ts";

export const JSON_TYPE = "application/json; charset=utf-8";

export function jsonAnswer(status: number, value: unknown): HttpAnswer {
  return {
    status,
    headers: { "content-type": JSON_TYPE },
    body: `${JSON.stringify(value)}\n`,
  };
}

/** Why a request is refused before any method is called. It becomes an answer in the form of Connect's errors. */
export class HttpRefusal extends Error {
  readonly status: number;
  /** One of Connect's words. */
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

export function refusalAnswer({ status, code, message, headers }: HttpRefusal): HttpAnswer {
  const answer = jsonAnswer(status, { code, message });
  return { ...answer, headers: { ...headers, ...answer.headers } };
}
