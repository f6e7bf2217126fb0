import type { JSX } from "preact";
import { tOr } from "../text/text.ts";
import { Badge, type BadgeTone } from "./badge.tsx";

const TONES: Readonly<Record<string, BadgeTone>> = {
  NODE_STATE_SERVING: "good",
  NODE_STATE_DRAINING: "warn",
  NODE_STATE_DEGRADED: "bad",
  NODE_STATE_STOPPED: "bad",
  STORE_STATE_GRANTING: "good",
  STORE_STATE_UNREACHABLE: "bad",
  STORE_STATE_FENCED: "bad",
};

/** A state of a server or a store, by its name in the API. */
export function StateBadge({ state }: { readonly state: string }): JSX.Element {
  return <Badge tone={TONES[state] ?? "idle"}>{tOr("state", state)}</Badge>;
}
