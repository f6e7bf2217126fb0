/** What a right lets its holder do: take ids of tags, look at them, or change them. */
export const ROLES = ["issue", "observe", "admin"] as const;

export type Role = (typeof ROLES)[number];

/** A role for the tags whose names fit a pattern: a whole name, or the beginning of names followed by `*`. */
export interface Right {
  readonly role: Role;
  readonly tags: string;
}

/** Who a caller was proved to be. The names by which callers call themselves are claims, and stand nowhere in here. */
export interface Principal {
  readonly name: string;
  readonly proof: "token" | "certificate";
  /** The public id of the token that proved it; empty with a certificate. Never the secret. */
  readonly tokenId: string;
  readonly rights: readonly Right[];
}
