import type { EtcdConfig } from "../shared/config.ts";
import { schemaStanding } from "../shared/migration.ts";
import { stoppedTimeOf } from "../shared/issuing.ts";
import {
  NO_SCHEMA,
  refusedTagsText,
  type StoreFinding,
  type StoreStatus,
} from "../shared/status.ts";
import { CallFailure, refusalIn } from "./cluster/failure.ts";
import { Etcd, type Session } from "./session/etcd.ts";
import { AUTO_COMPACTION, lookAtHistory } from "./history.ts";
import { issuingFrom } from "./nodes.ts";
import { appliedMigrations, migrations } from "./schema.ts";
import { hexOf, storeHasNoRecord } from "./session/proof.ts";
import { tagsFrom } from "./session/rows.ts";
import { memberTroubles, readPlainly } from "./session/sight.ts";
import { pagesOfTags } from "./tags.ts";

/** Of rows that are never written. */
const PROBE = "probe";
/** How long reading all tags may take. */
const ALL_TAGS_MS = 30_000;

/** Looks at a store without changing it, also one that a server would refuse. */
export async function status(config: EtcdConfig): Promise<StoreStatus> {
  const etcd = new Etcd(config);
  try {
    const found = await etcd.run((session) => look(session, config));
    if (found.fenced !== "" || found.tags === 0) return found;
    const refusedTags = await etcd.run(unreadableTags, ALL_TAGS_MS);
    return { ...found, refusedTags };
  } finally {
    await etcd.close();
  }
}

async function look(session: Session, config: EtcdConfig): Promise<StoreStatus> {
  const { etcd, keys } = session;
  const members = await memberTroubles(etcd);
  const found = [{ key: keys.one("schema") }, { key: keys.one("store") }];
  const [schema, store] = await readPlainly(session, found);
  const applied = appliedMigrations(schema);
  const common = {
    backend: config.backend,
    ...schemaStanding(migrations, applied),
    standbys: "",
    members,
  };
  if (applied.length === 0) return { ...NO_SCHEMA, ...common };
  if (store === undefined) throw storeHasNoRecord(keys);
  const ops = [
    { range: { key: keys.one("revision") } },
    { range: { ...keys.tags("", ""), countOnly: true } },
    { range: { key: keys.one("issuing") } },
  ];
  const how = { effect: "any", fenced: "allow", prove: true } as const;
  const { answers, standing } = await etcd.transact(session.deadlineMs, ops, how);
  const [counter, tags, issuing] = answers.map(({ range }) => range);
  const { record, status: member, fenced } = standing;
  const keepsAll = (await lookAtHistory(session)) === "keeps all";
  return {
    ...common,
    storeId: record.storeId,
    incarnation: record.incarnation,
    revision: BigInt(counter?.kvs[0]?.value.toString() ?? "0"),
    tags: Number(tags?.count ?? "0"),
    stoppedTime: stoppedTimeOf(issuingFrom(issuing?.kvs[0])),
    acceptedIdentity: `cluster ${hexOf(record.clusterId)}`,
    presentIdentity: `cluster ${hexOf(member.header.clusterId)}`,
    fenced,
    findings: await writeFindings(session),
    unsafe: keepsAll ? [AUTO_COMPACTION] : [],
    timeMs: undefined,
  };
}

async function unreadableTags(session: Session): Promise<string> {
  const names: string[] = [];
  for await (const kvs of pagesOfTags(session)) {
    names.push(...tagsFrom(kvs).unreadable.map(({ tag }) => tag));
  }
  return refusedTagsText(names, names.length, "whose keys cannot be read");
}

/** What keeps servers from writing, found by a transaction that etcd would refuse whole and that does nothing. */
async function writeFindings({
  etcd,
  keys,
  deadlineMs,
}: Session): Promise<readonly StoreFinding[]> {
  const success = [keys.one("room"), keys.node(PROBE), keys.tag(PROBE)].map((key) => ({
    put: { key, value: Buffer.of() },
  }));
  const never = { key: keys.one("store"), modRevision: "0" };
  try {
    await etcd.ask(deadlineMs, (ask) => ask("txn", { compare: [never], success, failure: [] }));
    return [];
  } catch (error) {
    const [found = "", fix] = refusalIn(error).split("; ");
    if (fix === undefined) throw error;
    const name = error instanceof CallFailure && error.kind === "full" ? "full" : "rights";
    return [{ name, isFatal: true, found, fix }];
  }
}
