import { assertNoViolations, invalidField } from "@idmint/core";
import { type AccessStore, type ChangeOptions, isTokenId, type Token } from "@idmint/core/server";
import type { AdminGate } from "../admin-gate.ts";
import { decodePageToken, encodePageToken, pageLimitOf, pageSizeViolation } from "../page-token.ts";
import { newToken, tokenNotFound, tooManyTokens, type TokenRequest } from "./new-token.ts";

/** Every server polls within a second, and has the answer within another one. */
const EVERYWHERE_MS = 2_000;
const TOKEN_LIST: readonly string[] = ["tokens"];

export interface TokenServicePorts {
  readonly store: AccessStore;
  readonly gate: AdminGate;
  /** Fulfils when a look at the tokens that began after it has ended. */
  readonly refresh: () => Promise<void>;
  /** Of a source fit for secrets. */
  readonly randomBytes: (count: number) => Uint8Array;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/** Makes, lists and revokes tokens. */
export class TokenService {
  readonly #ports: TokenServicePorts;

  constructor(ports: TokenServicePorts) {
    this.#ports = ports;
  }

  async create(
    request: TokenRequest,
    { validateOnly = false, by }: ChangeOptions,
  ): Promise<{ token: Token; text: string; effectiveAtMs: number }> {
    const { store, gate, refresh, randomBytes, wallClock } = this.#ports;
    const made = newToken(request, { nowMs: wallClock(), randomBytes });
    if (validateOnly) {
      return { token: { ...made.token, id: "" }, text: "", effectiveAtMs: wallClock() };
    }
    const isAdded = await gate.run(() => store.addToken(made.token, by));
    if (!isAdded) throw tooManyTokens();
    const effectiveAtMs = wallClock() + EVERYWHERE_MS;
    await refresh();
    return { ...made, effectiveAtMs };
  }

  async list({
    pageSize,
    pageToken,
  }: {
    readonly pageSize: number;
    readonly pageToken: string;
  }): Promise<{ tokens: readonly Token[]; nextPageToken: string }> {
    const after = decodePageToken(pageToken, TOKEN_LIST);
    assertNoViolations(
      pageSizeViolation(pageSize),
      after === undefined
        ? {
            field: "page_token",
            description: "is not one of this list",
            reason: "INVALID_PAGE_TOKEN",
          }
        : undefined,
    );
    const { store, gate } = this.#ports;
    const { tokens = [] } = await gate.run(() => store.readTokens(undefined));
    const left = tokens.filter(({ id }) => id > (after ?? ""));
    const page = left.slice(0, pageLimitOf(pageSize));
    const last = page.at(-1);
    const isMore = left.length > page.length && last !== undefined;
    return { tokens: page, nextPageToken: isMore ? encodePageToken(last.id, TOKEN_LIST) : "" };
  }

  async revoke(id: string, { validateOnly = false, by }: ChangeOptions): Promise<number> {
    const { store, gate, refresh, wallClock } = this.#ports;
    if (!isTokenId(id)) {
      const text =
        "must be the public id of a token, 16 hexadecimal digits; idmint token list shows them";
      throw invalidField("token_id", text, "INVALID_FORMAT");
    }
    if (validateOnly) {
      const { tokens = [] } = await gate.run(() => store.readTokens(undefined));
      if (!tokens.some((token) => token.id === id)) throw tokenNotFound(id);
      return wallClock();
    }
    const wasThere = await gate.run(() => store.removeToken(id, by));
    if (!wasThere) throw tokenNotFound(id);
    const effectiveAtMs = wallClock() + EVERYWHERE_MS;
    await refresh();
    return effectiveAtMs;
  }
}
