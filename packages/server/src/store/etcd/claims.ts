// Servers on this backend are not asked yet what they were granted: an accept goes by its gap, and each server raises afterwards
// what was left too low (service/upstream/late-claims.ts).
import type { Asked, ClaimsAnswer, Hearing } from "@idmint/core/server";

export async function askForClaims(): Promise<Asked> {
  return { outcome: "nobody" };
}

export async function hearClaims(): Promise<Hearing> {
  return { isStanding: false, nodes: [], claimants: [] };
}

export async function claim(): Promise<ClaimsAnswer> {
  return "not-asked";
}

export async function withdrawAsk(): Promise<void> {
  // Nothing stands.
}
