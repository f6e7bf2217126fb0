import type { ResponseOf } from "../../api/json.ts";

export type Events = ResponseOf<"AuditService", "listAuditEvents">;
export type AuditEvent = Events["events"][number];
