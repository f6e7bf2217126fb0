import type { StoreFinding } from "../../shared/status.ts";
import type { Session } from "../connections.ts";
import { LACKING, rightsByObject } from "./rights.ts";
import { toLogged, unloggedTables } from "./unlogged.ts";

const LOOK = `SELECT current_user AS role, current_setting('server_encoding') AS encoding,
  current_setting('default_transaction_read_only') = 'on' AS is_read_only, ${LACKING} AS lacking,
  ${unloggedTables("'idmint'")} AS unlogged`;

interface LookRow {
  readonly role: string;
  readonly encoding: string;
  readonly is_read_only: boolean;
  readonly lacking: readonly string[];
  readonly unlogged: readonly string[];
}

/** What would end a start, or make it refuse later, that the store's own row does not tell. Needs no right on any table. */
export async function findFaults(session: Session): Promise<readonly StoreFinding[]> {
  const [row] = await session.query<LookRow>({ text: LOOK });
  return row === undefined ? [] : faultsOf(row);
}

function faultsOf(row: LookRow): StoreFinding[] {
  const { role, encoding, is_read_only: isReadOnly, lacking, unlogged } = row;
  const findings: StoreFinding[] = [];
  if (lacking.length > 0) {
    const missing = rightsByObject(lacking).join("; ");
    findings.push({
      name: "rights",
      isFatal: true,
      found: `the role ${role} lacks ${missing}`,
      fix: "grant it what docs/postgres.md lists",
    });
  }
  if (unlogged.length > 0) {
    findings.push({
      name: "unlogged",
      isFatal: true,
      found: `a crash empties ${unlogged.join(", ")}, since UNLOGGED`,
      fix: `${toLogged(unlogged)}, then idmint store accept --gap N`,
    });
  }
  if (isReadOnly) {
    findings.push({
      name: "read_only",
      isFatal: true,
      found: "default_transaction_read_only is on, so nothing can be written",
      fix: "switch it off, which may be set for the role, the database or the server; a fail-over tool may have done it",
    });
  }
  if (encoding !== "UTF8") {
    findings.push({
      name: "encoding",
      isFatal: false,
      found: `the database has the encoding ${encoding}, so texts with other characters are refused`,
      fix: "make the database with ENCODING 'UTF8', if descriptions and names need them",
    });
  }
  return findings;
}
