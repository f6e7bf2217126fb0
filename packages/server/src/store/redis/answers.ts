import { type RedisDoubt, storeUnavailable } from "@idmint/core/server";

const NUMBER = /^-?\d{1,16}$/;

/** The texts a script answered; a Redis that answers anything else is not to be believed. */
export function textsOf(answer: unknown): readonly string[] {
  if (Array.isArray(answer) && answer.every((part) => typeof part === "string")) return answer;
  throw nonsense();
}

export function bigintOf(text: string | undefined): bigint {
  if (text === undefined || !NUMBER.test(text)) throw nonsense();
  return BigInt(text);
}

export function numberOf(text: string | undefined): number {
  const number = Number(bigintOf(text));
  if (!Number.isSafeInteger(number)) throw nonsense();
  return number;
}

/** The doubt a script answered; undefined when it is none. */
export function doubtOf(answer: readonly string[]): RedisDoubt | undefined {
  const [status = "", generation, detail] = answer;
  if (status === "missing" && detail !== undefined) return { status, vacancy: detail };
  if (status === "moved") {
    return { status, generation: bigintOf(generation), agoMs: numberOf(detail) };
  }
  if (status === "restarted" || status === "other-generation" || status === "behind") {
    return { status, generation: bigintOf(generation) };
  }
  return undefined;
}

/** The emptiness that a seed may end; empty when Redis was not empty. */
export function vacancyOf(doubt: RedisDoubt): string {
  return doubt.status === "missing" ? doubt.vacancy : "";
}

export function nonsense(): Error {
  return storeUnavailable("Redis answered what its script cannot answer");
}
