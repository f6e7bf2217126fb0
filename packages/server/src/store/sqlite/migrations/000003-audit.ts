import type { Migration } from "../../shared/migration.ts";

/** `audit` has who changed what, and who was refused. Older servers leave no rows of what they change. */
export const audit: Migration = {
  number: 3,
  name: "audit trail",
  worksFrom: 1,
  sql: `
CREATE TABLE audit (
  kind TEXT NOT NULL CHECK (kind IN ('change', 'refusal')),
  at_ms INTEGER NOT NULL,
  id TEXT COLLATE BINARY NOT NULL CHECK (length(id) BETWEEN 1 AND 128),
  principal TEXT NOT NULL,
  proof TEXT NOT NULL,
  peer TEXT NOT NULL,
  method TEXT NOT NULL,
  server TEXT NOT NULL,
  resource TEXT NOT NULL,
  outcome TEXT NOT NULL,
  before_json TEXT NOT NULL,
  after_json TEXT NOT NULL,
  omitted INTEGER NOT NULL CHECK (omitted >= 0),
  PRIMARY KEY (kind, at_ms, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_principal ON audit (kind, principal, at_ms, id);
`,
};
