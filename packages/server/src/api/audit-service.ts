import type { AuditEvent as Row, AuditKind as Kind } from "@idmint/core/server";
import { invalidField } from "@idmint/core";
import {
  type AuditEvent,
  AuditKind,
  ListAuditEventsRequest,
  ListAuditEventsResponse,
} from "@idmint/proto";
import type { AuditList } from "../service/audit/list.ts";
import { type Handler, handlerOf, type HandlerPorts } from "./method.ts";
import { NEEDS } from "./need.ts";

const KINDS: Readonly<Record<Kind, AuditKind>> = {
  change: AuditKind.CHANGE,
  refusal: AuditKind.REFUSAL,
};

/** Answered while the server drains too: that is when people ask what happened. */
export function auditHandler(list: AuditList, ports: HandlerPorts): Handler {
  return handlerOf(
    "idmint.v1.AuditService",
    {
      name: "ListAuditEvents",
      request: ListAuditEventsRequest,
      response: ListAuditEventsResponse,
      need: NEEDS.adminAll,
      call: async ({ startTime, endTime, kind, ...query }) => {
        const times = { sinceMs: startTime?.getTime(), untilMs: endTime?.getTime() };
        const page = await list.list({ ...query, ...times, kind: kindOf(kind) });
        return { events: page.events.map(eventOf), nextPageToken: page.nextPageToken };
      },
      whileDraining: true,
    },
    ports,
  );
}

function kindOf(kind: AuditKind): Kind | undefined {
  if (kind === AuditKind.UNSPECIFIED) return undefined;
  const [found] = Object.entries(KINDS).find(([, its]) => its === kind) ?? [];
  if (found === "change" || found === "refusal") return found;
  throw invalidField("kind", `must be CHANGE or REFUSAL, got ${kind}`, "UNKNOWN_VALUE");
}

function eventOf({ id, atMs, kind, omitted, ...same }: Row): AuditEvent {
  const omittedCount = BigInt(omitted);
  return { ...same, eventId: id, time: new Date(atMs), kind: KINDS[kind], omittedCount };
}
