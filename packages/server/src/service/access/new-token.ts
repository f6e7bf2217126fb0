import { createHash } from "node:crypto";
import { assertNoViolations, IdmintError, principalViolation } from "@idmint/core";
import {
  assertRights,
  MAX_TOKENS,
  type Right,
  type Token,
  TOKEN_ID_BYTES,
  TOKEN_SECRET_BYTES,
  tokenText,
} from "@idmint/core/server";

/** What is asked of a token that is to be made. */
export interface TokenRequest {
  readonly principal: string;
  readonly rights: readonly Right[];
  /** Undefined: DEFAULT_LIFETIME_MS. */
  readonly lifetimeMs: number | undefined;
}

/** What a token is made of besides. */
interface NewTokenPorts {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Of a source fit for secrets. */
  readonly randomBytes: (count: number) => Uint8Array;
}

const DAY_MS = 86_400_000;
const DEFAULT_LIFETIME_MS = 90 * DAY_MS;
const MIN_LIFETIME_MS = 60_000;
const MAX_LIFETIME_MS = 366 * DAY_MS;

/** SHA-256 is enough: nobody guesses 256 random bits, however fast they are compared. */
export function hashOfSecret(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

/** Makes a token, and the text that proves it, which nothing keeps. Throws INVALID_ARGUMENT that names every bad field. */
export function newToken(
  request: TokenRequest,
  { nowMs, randomBytes }: NewTokenPorts,
): { token: Token; text: string } {
  const { principal, rights, lifetimeMs = DEFAULT_LIFETIME_MS } = request;
  const isLong = lifetimeMs >= MIN_LIFETIME_MS && lifetimeMs <= MAX_LIFETIME_MS;
  assertNoViolations(
    principalViolation("principal", principal),
    isLong
      ? undefined
      : {
          field: "lifetime",
          description: "must be 1 minute to 366 days",
          reason: "VALUE_OUT_OF_RANGE",
        },
  );
  assertRights(rights, "rights");
  const id = Buffer.from(randomBytes(TOKEN_ID_BYTES)).toString("hex");
  const secret = Buffer.from(randomBytes(TOKEN_SECRET_BYTES)).toString("base64url");
  const hash = hashOfSecret(secret).toString("hex");
  const times = { createdAtMs: nowMs, expiresAtMs: nowMs + lifetimeMs };
  return { token: { id, principal, rights, hash, ...times }, text: tokenText({ id, secret }) };
}

export function tooManyTokens(): IdmintError {
  const text = `there are ${MAX_TOKENS} tokens already; revoke those that nobody uses`;
  return new IdmintError("TOKENS_EXHAUSTED", text);
}

export function tokenNotFound(id: string): IdmintError {
  const text = `there is no token ${id}; idmint token list shows them`;
  return new IdmintError("TOKEN_NOT_FOUND", text, { metadata: { token_id: id } });
}
