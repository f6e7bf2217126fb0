// Servers on this backend are not asked yet what they were granted: an accept goes by its gap, and each server raises afterwards
// what was left too low (service/upstream/late-claims.ts).
import type { Asked, ClaimsAnswer, Hearing } from "@idmint/core/server";

export function askForClaims(): Asked {
  return { outcome: "nobody" };
}

export function hearClaims(): Hearing {
  return { isStanding: false, nodes: [], claimants: [] };
}

export function claim(): ClaimsAnswer {
  return "not-asked";
}

export function withdrawAsk(): void {
  // Nothing stands.
}
