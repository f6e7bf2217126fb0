import type { Migration } from "../../shared/migration.ts";

/** `audit` has who changed what, and who was refused. Older servers leave no rows of what they change. */
export const audit: Migration = {
  number: 3,
  name: "audit trail",
  worksFrom: 1,
  sql: `
CREATE TABLE idmint.audit (
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('change', 'refusal')),
  at_ms bigint NOT NULL,
  id text COLLATE "C" NOT NULL CHECK (length(id) BETWEEN 1 AND 128),
  principal text NOT NULL,
  proof text NOT NULL,
  peer text NOT NULL,
  method text NOT NULL,
  server text NOT NULL,
  resource text NOT NULL,
  outcome text NOT NULL,
  before_json text NOT NULL,
  after_json text NOT NULL,
  omitted bigint NOT NULL CHECK (omitted >= 0),
  PRIMARY KEY (kind, at_ms, id)
);
CREATE INDEX audit_principal ON idmint.audit (kind, principal, at_ms, id);
`,
};
