import { storeWentBack } from "@idmint/core/server";
import type { PostgresConfig } from "../shared/config.ts";
import { UNSAFE_SETTINGS } from "../shared/backends.ts";
import { issuingFromRow, type IssuingRow, stoppedTimeOf } from "../shared/issuing.ts";
import { schemaStanding } from "../shared/migration.ts";
import {
  NO_SCHEMA,
  refusedTagsText,
  type StoreFinding,
  type StoreStatus,
} from "../shared/status.ts";
import { Connections, type Session } from "./connections.ts";
import { findFaults } from "./faults/faults.ts";
import { findHolders, horizonFindings } from "./faults/horizon.ts";
import { isPooled, MIN_TO_FIND_POOLER, POOLER } from "./faults/pooler.ts";
import { onlyStore, PRESENT_IDENTITY, proof, STORE_COLUMNS, TAG_IS_OURS } from "./identity.ts";
import { migrations } from "./migrations/index.ts";
import { appliedMigrations } from "./schema.ts";

const STATUS = `WITH ${proof(`'{${onlyStore(undefined)}}'::text[]`)}
SELECT ${STORE_COLUMNS}, ${PRESENT_IDENTITY} AS present, p.fenced, p.unsafe,
  s.standbys, (SELECT count(*) FROM idmint.tag) AS tags
FROM idmint.store AS s CROSS JOIN proof AS p`;

interface StatusRow extends IssuingRow {
  readonly store_id: string;
  readonly incarnation: string;
  readonly identity: string;
  readonly revision: string;
  readonly fenced: string;
  readonly present: string;
  readonly unsafe: string;
  readonly standbys: string;
  readonly tags: string;
  readonly now_ms: string;
}

/** Everything, so that it is looked at. But servers that are to commit safely switch that on for themselves. */
function asServersAllow({ allowUnsafe }: PostgresConfig): readonly string[] {
  const commit = "synchronous_commit";
  return UNSAFE_SETTINGS.filter((name) => name !== commit || allowUnsafe.includes(commit));
}

/** Looks at a database without changing it, also one that a server would refuse. */
export async function status(config: PostgresConfig): Promise<StoreStatus> {
  const poolSize = Math.max(MIN_TO_FIND_POOLER, config.poolSize ?? 0);
  const allowUnsafe = asServersAllow(config);
  const connections = new Connections({ ...config, poolSize, allowUnsafe });
  try {
    const shared = (await isPooled(connections)) ? [POOLER] : [];
    return await connections.run(async (session) => {
      const applied = await appliedMigrations(session);
      const held = horizonFindings(await findHolders(session));
      const findings = [...shared, ...(await findFaults(session)), ...held];
      const standing = schemaStanding(migrations, applied);
      const common = { backend: config.backend, ...standing, findings };
      if (applied.length === 0) return { ...NO_SCHEMA, ...common };
      const row = await readRow(session, findings);
      if (row === undefined) return { ...NO_SCHEMA, ...common };
      return {
        ...common,
        storeId: row.store_id,
        incarnation: row.incarnation,
        revision: BigInt(row.revision),
        stoppedTime: stoppedTimeOf(issuingFromRow(row)),
        tags: Number(row.tags),
        acceptedIdentity: row.identity,
        presentIdentity: row.present,
        fenced: row.fenced,
        standbys: row.standbys,
        refusedTags: row.fenced === "" ? await refusedTags(session) : "",
        unsafe: row.unsafe === "" ? [] : row.unsafe.split(","),
        timeMs: Number(row.now_ms),
      };
    });
  } finally {
    await connections.close();
  }
}

const NOT_OURS = `SELECT count(*)::integer AS count, (array_agg(t.name ORDER BY t.name))[1:5] AS names
  FROM idmint.tag AS t WHERE t.moved_to IS NULL AND NOT ${TAG_IS_OURS}`;

async function refusedTags(session: Session): Promise<string> {
  const [row] = await session.query<{ count: number; names: string[] | null }>({ text: NOT_OURS });
  const why = "whose rows were loaded from a dump, changed by hand, or rewritten by an ALTER TABLE";
  return refusedTagsText(row?.names ?? [], row?.count ?? 0, why);
}

/** Undefined for a role that may not read it, which the findings say. */
async function readRow(
  session: Session,
  findings: readonly StoreFinding[],
): Promise<StatusRow | undefined> {
  let rows: readonly StatusRow[];
  try {
    rows = await session.query<StatusRow>({ text: STATUS });
  } catch (error) {
    if (findings.some(({ name }) => name === "rights")) return undefined;
    throw error;
  }
  const [row] = rows;
  if (row === undefined) throw storeWentBack("the store has lost its identity");
  return row;
}
