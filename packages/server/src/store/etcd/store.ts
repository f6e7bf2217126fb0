import { IdmintError } from "@idmint/core";
import {
  type CallAnswers,
  type CallArgs,
  type Store,
  type StoreCall,
  storeCalls,
} from "@idmint/core/server";
import type { EtcdConfig } from "../shared/config.ts";
import { schemaMismatch } from "../shared/failures.ts";
import { passingPins, type StorePins } from "../pins/pin.ts";
import { workableVersion } from "../shared/migration.ts";
import * as accept from "./accept.ts";
import * as audit from "./records/audit.ts";
import * as changes from "./changes.ts";
import * as claims from "./claims.ts";
import { Etcd, MAX_ROWS, type Session } from "./session/etcd.ts";
import * as giveBack from "./give-back.ts";
import * as grant from "./grant.ts";
import { requireCompaction } from "./history.ts";
import * as ledger from "./records/ledger.ts";
import * as marks from "./marks.ts";
import * as nodes from "./nodes.ts";
import * as periods from "./periods.ts";
import * as raise from "./raise.ts";
import { appliedMigrations, migrations } from "./schema.ts";
import { readPlainly, requireOneCluster, readCluster } from "./session/sight.ts";
import * as tags from "./tags.ts";
import * as tokens from "./records/tokens.ts";
import * as workerLeases from "./worker-leases.ts";

/** What each call does with the cluster: the function of its name out of the files beside this one. */
const CALLS: {
  readonly [Name in StoreCall]: (etcd: Etcd, ...args: CallArgs[Name]) => Promise<CallAnswers[Name]>;
} = {
  ...accept,
  ...audit,
  ...changes,
  ...claims,
  ...giveBack,
  ...grant,
  ...ledger,
  ...marks,
  ...nodes,
  ...periods,
  ...raise,
  ...tags,
  ...tokens,
  ...workerLeases,
};

export async function open(config: EtcdConfig, pins: StorePins = passingPins()): Promise<Store> {
  const etcd = new Etcd(config, pins.of(""));
  try {
    const schemaVersion = await etcd.run(async (session) => {
      await requireOneCluster(etcd);
      const { status } = await readCluster(session);
      refuseOld(status.version);
      const [schema] = await readPlainly(session, [{ key: etcd.keys.one("schema") }]);
      const version = workableVersion(migrations, appliedMigrations(schema));
      await lookForCompaction(session);
      return version;
    });
    return {
      ...storeCalls((name, args) => CALLS[name](etcd, ...args)),
      backend: config.backend,
      maxBatch: MAX_ROWS,
      schemaVersion,
      listen: (heard) => etcd.listen(heard),
      close: () => etcd.close(),
    };
  } catch (error) {
    await etcd.close();
    throw error;
  }
}

/** A store that went back opens, and refuses to grant. */
async function lookForCompaction(session: Session): Promise<void> {
  try {
    await requireCompaction(session);
  } catch (error) {
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
  }
}

function refuseOld(version: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 3 || (major === 3 && minor >= 4)) return;
  throw schemaMismatch(`etcd ${version} is too old; 3.4 is the oldest`);
}
