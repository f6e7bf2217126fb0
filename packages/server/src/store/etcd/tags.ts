import { countsToFloor } from "@idmint/core/kinds";
import type {
  AuditNote,
  ChangeOptions,
  Tag,
  TagChange,
  TagSettings,
  TagStore,
} from "@idmint/core/server";
import { tagChanged } from "../shared/records/audit.ts";
import {
  advancedTag,
  asAsked,
  createdTag,
  type Decision,
  returnedTag,
  type Stamp,
  tagInState,
  updatedTag,
} from "../shared/change.ts";
import { knownTimeZone } from "../shared/time-zone.ts";
import { putAudit } from "./records/audit.ts";
import type { Op } from "./cluster/protocol.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import { keptFrom, readRows } from "./session/kept-rows.ts";
import { endPeriod } from "./periods.ts";
import { recordFrom, tagFrom, valueOfTag } from "./session/rows.ts";

/**
 * One change by an operator.
 *
 * INVARIANT: the store's revision, the tag's row and who changed it are written by one transaction, over those that were
 * read. So revisions become visible in their order, and a poll that has seen one misses none below it. A change whose
 * outcome is not known is not tried again: it might be taken for somebody else's.
 */
async function change(
  etcd: Etcd,
  name: string,
  by: AuditNote | undefined,
  decide: (row: Tag | undefined, stamp: Stamp) => Decision,
  more: (session: Session, old: Tag, stamp: Stamp) => Op[] = () => [],
): Promise<Decision> {
  const { keys } = etcd;
  return etcd.run((session) =>
    etcd.alone([name], session.deadlineMs, async () => {
      for (let round = 0; ; round++) {
        if (round > 0) await session.afterConflict(round);
        const ranges = [keys.tag(name), keys.one("revision"), keys.one("store")];
        const read = await session.read(ranges.map((key) => ({ key })));
        const [[kv] = [], [counter] = [], [store] = []] = read;
        const { tag: old, modRevision } = keptFrom(kv);
        const revision = BigInt(counter?.value.toString() ?? "0") + 1n;
        const { generation } = recordFrom(store?.value ?? Buffer.of());
        const firstEpoch = generation > 0n ? generation : 1n;
        const stamp = { revision, nowMs: etcd.now(), firstEpoch };
        const decision = decide(old, stamp);
        if (!decision.changed) return decision;
        const { tag } = decision;
        etcd.kept.delete(name);
        const compare = [
          { key: keys.tag(name), modRevision },
          { key: keys.one("revision"), modRevision: counter?.modRevision ?? "0" },
        ];
        const success: Op[] = [
          { put: { key: keys.tag(name), value: valueOfTag(tag) } },
          ...recordChange(etcd, old, tag),
          { put: { key: keys.one("revision"), value: Buffer.from(String(revision)) } },
          ...(old === undefined ? [] : more(session, old, stamp)),
          ...(by === undefined ? [] : [putAudit(keys, tagChanged(by, old, tag))]),
        ];
        const { answers } = await session.write([{ txn: { compare, success, failure: [] } }]);
        if (answers[0]?.txn?.succeeded === true) return decision;
      }
    }),
  );
}

/** Puts a tag's change in its place among all changes. */
export function recordChange({ keys }: Etcd, old: Tag | undefined, tag: Tag): Op[] {
  const put = { key: keys.change(tag.revision), value: Buffer.from(tag.name) };
  // It stays in its place when an accept that was interrupted is made again.
  const isMoved = old !== undefined && old.revision !== tag.revision;
  return [...(isMoved ? [{ remove: { key: keys.change(old.revision) } }] : []), { put }];
}

export async function createTag(
  etcd: Etcd,
  settings: TagSettings,
  options?: ChangeOptions,
): Promise<Tag> {
  knownTimeZone(settings.kind);
  const decision = await change(etcd, settings.name, options?.by, (row, stamp) =>
    asAsked(createdTag(row, settings, stamp), options),
  );
  return decision.tag;
}

export async function updateTag(
  etcd: Etcd,
  name: string,
  what: TagChange,
  expectedRevision: bigint | undefined,
  options?: ChangeOptions,
): Promise<Tag> {
  if (what.settings !== undefined) knownTimeZone(what.settings.kind);
  const decision = await change(etcd, name, options?.by, (row, stamp) =>
    asAsked(updatedTag(name, row, what, expectedRevision, stamp), options),
  );
  return decision.tag;
}

export async function setTagState(
  etcd: Etcd,
  name: string,
  state: Tag["state"],
  expectedRevision: bigint | undefined,
  options?: ChangeOptions,
): Promise<Tag> {
  const decision = await change(etcd, name, options?.by, (row, stamp) =>
    asAsked(tagInState(name, row, state, expectedRevision, stamp), options),
  );
  return decision.tag;
}

export async function advanceTag(
  etcd: Etcd,
  name: string,
  floor: bigint,
  options: Parameters<TagStore["advanceTag"]>[2],
): Promise<{ tag: Tag; raised: boolean }> {
  let would: Decision | undefined;
  const { tag } = await change(etcd, name, options.by, (row, stamp) => {
    would = advancedTag(name, row, floor, options, stamp);
    return asAsked(would, options);
  });
  return { tag, raised: would?.changed ?? false };
}

export async function returnToPeriod(
  etcd: Etcd,
  name: string,
  period: Parameters<TagStore["returnToPeriod"]>[1],
  options: Parameters<TagStore["returnToPeriod"]>[2],
): Promise<{ tag: Tag; returned: boolean }> {
  let would: Decision | undefined;
  const { tag } = await change(
    etcd,
    name,
    options.by,
    (row, stamp) => {
      would = returnedTag(name, row, period, options.expectedRevision, stamp);
      return asAsked(would, options);
    },
    (session, old, { nowMs }) => endPeriod(session, old, nowMs),
  );
  return { tag, returned: would?.changed ?? false };
}

export async function getTags(etcd: Etcd, names: readonly string[]): Promise<readonly Tag[]> {
  const rows = await etcd.run((session) => readRows(session, names));
  return rows.flatMap(({ tag }) => (tag === undefined ? [] : [tag]));
}

export async function listTags(
  etcd: Etcd,
  { afterName, prefix, showDeleted, limit }: Parameters<TagStore["listTags"]>[0],
): Promise<readonly Tag[]> {
  return etcd.run(async (session) => {
    const found: Tag[] = [];
    for (let after = afterName; found.length < limit;) {
      const kvs = await session.readAll(etcd.keys.tags(after, prefix), limit - found.length);
      const tags = kvs.map(({ value }) => tagFrom(value));
      found.push(...tags.filter(({ state }) => showDeleted || state !== "DELETED"));
      if (kvs.length === 0) break;
      after = tags.at(-1)?.name ?? "";
    }
    return found;
  });
}

export async function recentTags(etcd: Etcd, limit: number): Promise<readonly string[]> {
  return etcd.run(async (session) => {
    const newest = { ...etcd.keys.tags("", ""), order: "newest", limit } as const;
    const [kvs = []] = await session.read([newest]);
    const tags = kvs.map(({ value }) => tagFrom(value));
    return tags
      .filter((tag) => tag.state !== "DELETED" && countsToFloor(tag.kind))
      .map(({ name }) => name);
  });
}
