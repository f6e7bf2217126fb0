import { randomUUID } from "node:crypto";
import type { AuditNote } from "@idmint/core/server";
import { storeMigrated } from "../shared/records/audit.ts";
import type { EtcdConfig } from "../shared/config.ts";
import {
  type AppliedMigration,
  checksumOf,
  type MigrateOptions,
  type MigrationReport,
  reportOf,
} from "../shared/migration.ts";
import { putAudit } from "./records/audit.ts";
import { Etcd, type Session } from "./session/etcd.ts";
import { markHistory } from "./history.ts";
import { valueOfRecord } from "./session/rows.ts";
import { appliedMigrations, migrations } from "./schema.ts";
import { readPlainly, requireOneCluster, readCluster } from "./session/sight.ts";

/** Makes the store's first keys, in one transaction that finds none of them. */
export async function migrate(
  config: EtcdConfig,
  options: MigrateOptions,
): Promise<MigrationReport> {
  const etcd = new Etcd(config);
  try {
    return await etcd.run(async (session) => {
      await requireOneCluster(etcd);
      const [schema] = await readPlainly(session, [{ key: etcd.keys.one("schema") }]);
      const report = reportOf(migrations, appliedMigrations(schema));
      if (report.steps.length > 0 && !options.dryRun) await seed(session, options.by);
      return report;
    });
  } finally {
    await etcd.close();
  }
}

async function seed(session: Session, by: AuditNote | undefined): Promise<void> {
  const { etcd, keys } = session;
  const { clusterId, lead, term, status } = await readCluster(session);
  const record = {
    storeId: randomUUID(),
    incarnation: randomUUID(),
    generation: 0n,
    clusterId,
    lead,
  };
  const applied = migrations.map((step): AppliedMigration => {
    const { number, worksFrom } = step;
    return { number, checksum: checksumOf(step), worksFrom };
  });
  const text = { schema: JSON.stringify(applied), revision: "0", term: String(term) } as const;
  const puts = (["schema", "revision", "term"] as const).map((name) => ({
    put: { key: keys.one(name), value: Buffer.from(text[name]) },
  }));
  const success = [
    { put: { key: keys.one("store"), value: valueOfRecord(record) } },
    ...puts,
    markHistory(session, status.header.revision, Date.now()),
    ...(by === undefined
      ? []
      : [putAudit(keys, storeMigrated(by, Date.now(), 0, migrations.length))]),
  ];
  const compare = [
    { key: keys.one("store"), modRevision: "0" },
    { key: keys.one("schema"), modRevision: "0" },
  ];
  // Somebody else's store is as good: whoever opens it finds it.
  await etcd.ask(session.deadlineMs, (ask) => ask("txn", { compare, success, failure: [] }));
}
