import type { Rights } from "./rights.ts";

/** Who a caller was proved to be. The names by which callers call themselves are claims, and stand nowhere in here. */
export interface Principal {
  readonly name: string;
  readonly proof: "token" | "certificate";
  /** The public id of the token that proved it; empty with a certificate. Never the secret. */
  readonly tokenId: string;
  readonly rights: Rights;
}
