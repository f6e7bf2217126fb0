import { countsToFloor } from "@idmint/core/kinds";
import type { CallArgs, Tag, TagPage, UnreadableTag } from "@idmint/core/server";
import { tagChanged } from "../shared/records/audit.ts";
import {
  advance,
  creation,
  firstEpochOf,
  isWritten,
  periodReturn,
  stateChange,
  type TagChanging,
  update,
  type Decision,
} from "../shared/change.ts";
import { knownTimeZone } from "../shared/time-zone.ts";
import { putAudit } from "./records/audit.ts";
import type { KeyValue, Op } from "./cluster/protocol.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import { Keys, next } from "./session/keys.ts";
import { keptFrom, readRows } from "./session/kept-rows.ts";
import { endPeriod } from "./periods.ts";
import { recordFrom, tagsFrom, valueOfTag } from "./session/rows.ts";

/**
 * One change by an operator.
 *
 * INVARIANT: the store's revision, the tag's row and who changed it are written by one transaction, over those that were
 * read. So revisions become visible in their order, and a poll that has seen one misses none below it. A change whose
 * outcome is not known is not tried again: it might be taken for somebody else's.
 */
async function change(etcd: Etcd, wanted: TagChanging): Promise<Decision> {
  const { keys } = etcd;
  const { name, options, kind, leavesPeriod = false, decide } = wanted;
  const by = options?.by;
  if (kind !== undefined) knownTimeZone(kind);
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
        const stamp = { revision, nowMs: etcd.now(), firstEpoch: firstEpochOf(generation) };
        const decision = decide(old, stamp);
        if (!isWritten(decision, wanted)) return decision;
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
          ...(leavesPeriod && old !== undefined ? endPeriod(session, old, stamp.nowMs) : []),
          ...(by === undefined ? [] : [putAudit(keys, tagChanged(by, old, tag))]),
        ];
        const { answers } = await session.write([{ txn: { compare, success, failure: [] } }]);
        if (answers[0]?.txn?.succeeded === true) return decision;
      }
    }),
  );
}

/** Puts a tag's change in its place among all changes. That in a pack stays, and polls pass it over. */
function recordChange({ keys }: Etcd, old: Tag | undefined, tag: Tag): Op[] {
  const put = { key: keys.change(tag.revision), value: Buffer.from(tag.name) };
  // One operation of a transaction for a key. The counter may have been set back by hand.
  const isMoved = old !== undefined && old.revision !== tag.revision;
  return [...(isMoved ? [{ remove: { key: keys.change(old.revision) } }] : []), { put }];
}

export async function createTag(etcd: Etcd, ...args: CallArgs["createTag"]): Promise<Tag> {
  const { tag } = await change(etcd, creation(...args));
  return tag;
}

export async function updateTag(etcd: Etcd, ...args: CallArgs["updateTag"]): Promise<Tag> {
  const { tag } = await change(etcd, update(...args));
  return tag;
}

export async function setTagState(etcd: Etcd, ...args: CallArgs["setTagState"]): Promise<Tag> {
  const { tag } = await change(etcd, stateChange(...args));
  return tag;
}

export async function advanceTag(
  etcd: Etcd,
  ...args: CallArgs["advanceTag"]
): Promise<{ tag: Tag; raised: boolean }> {
  const { tag, changed } = await change(etcd, advance(...args));
  return { tag, raised: changed };
}

export async function returnToPeriod(
  etcd: Etcd,
  ...args: CallArgs["returnToPeriod"]
): Promise<{ tag: Tag; returned: boolean }> {
  const { tag, changed } = await change(etcd, periodReturn(...args));
  return { tag, returned: changed };
}

export async function getTags(etcd: Etcd, names: readonly string[]): Promise<readonly Tag[]> {
  const rows = await etcd.run((session) => readRows(session, names));
  return rows.flatMap(({ tag }) => (tag === undefined ? [] : [tag]));
}

export async function listTags(
  etcd: Etcd,
  { afterName, prefix, showDeleted, limit }: CallArgs["listTags"][0],
): Promise<TagPage> {
  return etcd.run(async (session) => {
    const found: Tag[] = [];
    const unreadable: UnreadableTag[] = [];
    for (let after = afterName; ;) {
      const left = limit - found.length - unreadable.length;
      const kvs = left > 0 ? await session.readAll(etcd.keys.tags(after, prefix), left) : [];
      const last = kvs.at(-1);
      if (last === undefined) return { tags: found, unreadable };
      const page = tagsFrom(kvs);
      found.push(...page.tags.filter(({ state }) => showDeleted || state !== "DELETED"));
      unreadable.push(...page.unreadable);
      after = Keys.lastOf(last);
    }
  });
}

/** How many tags are read at once where all are read. */
const PAGE_OF_ALL = 2_000;

/** All tags. The next page is read while one is worked on. */
export async function* pagesOfTags(
  session: Session,
): AsyncGenerator<readonly KeyValue[], void, undefined> {
  const range = { ...session.keys.tags("", ""), limit: PAGE_OF_ALL };
  const pageFrom = (key: Buffer): ReturnType<Session["read"]> => {
    const page = session.read([{ ...range, key }], { fenced: "allow" });
    // Whoever gives up before it is there does not hear of it.
    page.catch(() => undefined);
    return page;
  };
  for (let reading = pageFrom(range.key); ;) {
    const [kvs = []] = await reading;
    const last = kvs.at(-1);
    if (last === undefined) return;
    reading = pageFrom(next(last.key));
    yield kvs;
  }
}

export async function recentTags(etcd: Etcd, limit: number): Promise<readonly string[]> {
  return etcd.run(async (session) => {
    const newest = { ...etcd.keys.tags("", ""), order: "newest", limit } as const;
    const [kvs = []] = await session.read([newest]);
    return tagsFrom(kvs)
      .tags.filter((tag) => tag.state !== "DELETED" && countsToFloor(tag.kind))
      .map(({ name }) => name);
  });
}
