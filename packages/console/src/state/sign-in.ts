import { type ReadonlySignal, signal } from "@preact/signals";
import { call } from "../api/client.ts";
import { type Access, accessOf, mayIn, NO_ACCESS, type Role } from "./access.ts";
import { forgetToken, keepToken, token, useToken } from "./session.ts";

const access = signal<Access | undefined>(undefined);

/** Who the caller is and what it may; undefined until the server said so. */
export const whoAmI: ReadonlySignal<Access | undefined> = access;

/** Whether the caller has a role for a tag; without a name, for all tags there may be. What it may not is not shown. */
export function may(role: Role, tag?: string): boolean {
  return mayIn(access.value ?? NO_ACCESS, role, tag);
}

/** Learns who the caller is. */
export async function learnAccess(signal?: AbortSignal): Promise<void> {
  access.value = accessOf(await call("AccessService", "getAccess", {}, { signal }));
  keepToken();
}

/** Takes a token if the server believes it. Rejects with ApiError, and uses the one before then. */
export async function signIn(text: string): Promise<void> {
  const before = token.value;
  useToken(text);
  try {
    await learnAccess();
  } catch (thrown) {
    useToken(before);
    throw thrown;
  }
}

export function signOut(): void {
  forgetToken();
  access.value = undefined;
}
