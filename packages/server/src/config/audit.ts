import { type Option, option } from "./option.ts";
import { duration, integer } from "./types.ts";

/** How much of the audit trail is kept. */
export interface AuditConfig {
  readonly auditKeepMs: number;
  readonly auditMaxRows: number;
}

/** The options about the audit trail; a part of the table. */
export const AUDIT_OPTIONS: { readonly [K in keyof AuditConfig]: Option<AuditConfig[K]> } = {
  auditKeepMs: option(
    "audit.keep",
    duration("1h", "87600h"),
    "9600h",
    "How long the store keeps who changed what, and who was refused. The default is 400 days.",
  ),
  auditMaxRows: option(
    "audit.max_rows",
    integer(100, 10_000_000),
    "100000",
    "Most changes that the store keeps in its audit trail, and most refusals. Beyond that the oldest go of the principals who have more than an equal part.",
  ),
};
