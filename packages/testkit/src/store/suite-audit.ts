// Who changed what, and who was refused.
import type { AuditEvent, AuditKind, AuditNote, Store } from "@idmint/core/server";
import { expect } from "vitest";
import { NO_CHECK, reasonOf, sequenceOf, settingsOf, type Suite } from "./support.ts";
import { tokenOf } from "./suite-tokens.ts";
import { renewalOf } from "./suite-nodes.ts";

/** A note, defaults filled in. */
export function noteOf(id: string, more: Partial<AuditNote> = {}): AuditNote {
  const who = { principal: "ops-1", proof: "token", peer: "10.0.0.7:4711" };
  return { id, ...who, method: "/idmint.v1.TagService/UpdateTag", server: "host:7600", ...more };
}

const refusalOf = (id: string, atMs: number, more: Partial<AuditEvent> = {}): AuditEvent => ({
  ...noteOf(id),
  kind: "refusal",
  atMs,
  resource: "tag/t",
  outcome: "PERMISSION_DENIED",
  before: "",
  after: "",
  omitted: 0,
  ...more,
});

/** Refusals of a principal, one after the other. */
function refusalsOf(principal: string, count: number): AuditEvent[] {
  return Array.from({ length: count }, (_, at) =>
    refusalOf(`${principal}${String(at).padStart(3, "0")}`, 1_000 + at, { principal }),
  );
}

/** All events of a kind in pages of `limit`, newest first. */
export async function auditOf(
  store: Store,
  kind: AuditKind = "change",
  limit = 1_000,
): Promise<AuditEvent[]> {
  const all: AuditEvent[] = [];
  for (let page: readonly AuditEvent[] | undefined; page === undefined || page.length === limit;) {
    page = await store.listAudit({ kind, before: all.at(-1), sinceMs: 0, limit });
    all.push(...page);
  }
  return all;
}

/** The one event of this name; a store in several databases may have it in each of them. */
async function eventOf(store: Store, id: string): Promise<AuditEvent> {
  const first = (await auditOf(store)).find((event) => event.id === id);
  if (first === undefined) throw new Error(`there is no event ${id}`);
  return first;
}

const parsed = ({ before, after }: AuditEvent): unknown[] =>
  [before, after].map((text) => (text === "" ? undefined : (JSON.parse(text) as unknown)));

export function auditCases(suite: Suite): void {
  tagRowCases(suite);
  otherRowCases(suite);
  listCases(suite);
  trimCases(suite);
}

function tagRowCases(suite: Suite): void {
  suite(
    "each change of a tag has a row: who, from where, what, before and after",
    async (store) => {
      const { nowMs } = await store.changes({ since: 0n, watched: [], limit: 1 });
      await store.createTag(settingsOf("t", { description: "one" }), { by: noteOf("1-create") });
      const made = await eventOf(store, "1-create");
      expect(made).toMatchObject({
        ...noteOf("1-create"),
        kind: "change",
        resource: "tag/t",
        outcome: "OK",
      });
      expect(Math.abs(made.atMs - nowMs)).toBeLessThan(60_000);
      expect(parsed(made)).toEqual([
        undefined,
        expect.objectContaining({ state: "ACTIVE", floor: "0", description: "one" }),
      ]);
      await store.updateTag("t", { description: "two" }, NO_CHECK, { by: noteOf("2-update") });
      expect(parsed(await eventOf(store, "2-update"))).toEqual([
        { description: "one" },
        { description: "two" },
      ]);
      const raise = { maxRaise: 1_000n, expectedRevision: undefined };
      await store.advanceTag("t", 500n, { ...raise, by: noteOf("3-advance") });
      expect(parsed(await eventOf(store, "3-advance"))).toEqual([
        { floor: "0", version: "0", epoch: "1" },
        { floor: "500", version: "1", epoch: "2" },
      ]);
      await store.setTagState("t", "PAUSED", NO_CHECK, { by: noteOf("4-pause") });
      expect(parsed(await eventOf(store, "4-pause"))).toEqual([
        { state: "ACTIVE", epoch: "2" },
        { state: "PAUSED", epoch: "3" },
      ]);
      await store.setTagState("t", "DELETED", NO_CHECK, { by: noteOf("5-delete") });
      await store.createTag(settingsOf("t"), { by: noteOf("6-again") });
      expect(parsed(await eventOf(store, "6-again"))[0]).toMatchObject({ state: "DELETED" });
      expect(await auditOf(store)).toHaveLength(6);
    },
  );

  suite("a return to a period has a row", async (store) => {
    const periods = { unit: "DAY", timeZone: "UTC", keepForMs: 86_400_000 } as const;
    await store.createTag(sequenceOf("daily", { periods }));
    const wish = {
      tag: "daily",
      kind: "sequence",
      count: 1,
      minCount: 1,
      after: 0n,
      seenVersion: 0n,
    } as const;
    await store.grant([wish]);
    const back = { start: "2020-01-01", floor: 7n };
    const by = noteOf("back");
    await store.returnToPeriod("daily", back, { expectedRevision: undefined, by });
    const [before, after] = parsed(await eventOf(store, "back"));
    expect(before).toMatchObject({ floor: "1" });
    expect(after).toMatchObject({ floor: "7" });
  });

  suite("what changed nothing, was only checked, or was refused has no row", async (store) => {
    await store.createTag(settingsOf("t"));
    const by = noteOf("none");
    await store.createTag(settingsOf("t"), { by });
    await store.createTag(settingsOf("u"), { by, validateOnly: true });
    await store.setTagState("t", "ACTIVE", NO_CHECK, { by });
    await store.setTagState("t", "PAUSED", NO_CHECK, { by, validateOnly: true });
    const late = store.updateTag("t", { description: "x" }, 99n, { by });
    expect(await reasonOf(late)).toBe("ETAG_MISMATCH");
    const far = { maxRaise: 1n, expectedRevision: undefined, by };
    expect(await reasonOf(store.advanceTag("t", 500n, far))).toBe("RAISE_TOO_LARGE");
    await store.setIssuing(false, { by });
    await store.setIssuing(true, { by, validateOnly: true });
    expect(await auditOf(store)).toEqual([]);
  });

  suite(
    "of changes at once each has its row, and there is no row of another",
    async (store, open) => {
      const handles = [store, await open(), await open()];
      await store.createTag(settingsOf("t"));
      const done: string[] = [];
      const work = Array.from({ length: 24 }, async (_, at) => {
        const handle = handles[at % 3] ?? store;
        const name = at % 2 === 0 ? "t" : `t${at}`;
        const id = `n${at}`;
        const [tag] = await handle.getTags([name]);
        try {
          // Whoever was overtaken has changed nothing.
          if (tag === undefined) await handle.createTag(settingsOf(name), { by: noteOf(id) });
          else await handle.updateTag(name, { description: id }, tag.revision, { by: noteOf(id) });
          done.push(id);
        } catch (error) {
          expect(error).toMatchObject({ reason: "ETAG_MISMATCH" });
        }
      });
      await Promise.all(work);
      const ids = (await auditOf(store)).map(({ id }) => id);
      expect(ids.toSorted()).toEqual(done.toSorted());
    },
  );
}

function otherRowCases(suite: Suite): void {
  suite("weights, drains, stops and accepts have rows", async (store) => {
    const row = { server: "host:7600", weight: 7, isDraining: false, revision: 0n };
    const set = await store.setTraffic(row, noteOf("weight"));
    expect(parsed(await eventOf(store, "weight"))).toEqual([
      undefined,
      { weight: 7, draining: false },
    ]);
    await store.setTraffic({ ...set, isDraining: true }, noteOf("drain"));
    expect(await eventOf(store, "drain")).toMatchObject({ resource: "server/host:7600" });
    expect(parsed(await eventOf(store, "drain"))).toEqual([
      { draining: false },
      { draining: true },
    ]);
    // Written over something newer: nothing was changed.
    await store.setTraffic({ ...row, weight: 9 }, noteOf("late"));
    await store.setIssuing(true, { by: noteOf("stop") });
    expect(parsed(await eventOf(store, "stop"))).toEqual([{ stopped: false }, { stopped: true }]);
    await store.createTag(settingsOf("t"));
    const { incarnation } = await store.changes({ since: 0n, watched: [], limit: 1 });
    await store.accept(10n, null, noteOf("accept"));
    const accepted = await eventOf(store, "accept");
    expect(accepted.resource).toBe("store");
    expect(parsed(accepted)[1]).toMatchObject({ gap: "10" });
    if (store.partsOf === undefined) expect(parsed(accepted)[0]).toEqual({ incarnation });
    const ids = new Set((await auditOf(store)).map(({ id }) => id));
    expect(ids).toEqual(new Set(["weight", "drain", "stop", "accept"]));
  });

  suite("tokens that come and go have rows, without secret or hash", async (store) => {
    const token = tokenOf("its");
    expect(await store.addToken(token, noteOf("add"))).toBe(true);
    expect(await store.addToken(token, noteOf("twice"))).toBe(false);
    expect(await store.removeToken("its", noteOf("remove"))).toBe(true);
    expect(await store.removeToken("its", noteOf("gone"))).toBe(false);
    const events = await auditOf(store);
    expect(new Set(events.map(({ id }) => id))).toEqual(new Set(["add", "remove"]));
    const added = await eventOf(store, "add");
    expect(added.resource).toBe("token/its");
    expect(parsed(added)[1]).toMatchObject({ principal: token.principal });
    expect(JSON.stringify(events)).not.toContain(token.hash);
  });

  suite("the row of a server that an operator removes has one, others have none", async (store) => {
    const { parts } = await store.changes({ since: 0n, watched: [], limit: 1 });
    for (const id of ["n1", "n2"]) {
      const renewal = renewalOf(id);
      await store.changes({ since: 0n, watched: [], limit: 1, renewal });
    }
    const keys = (id: string) => parts.map(({ name }) => ({ part: name, id, renewals: undefined }));
    await store.forgetNodes(keys("n1"), noteOf("forget"));
    await store.forgetNodes(keys("n1"), noteOf("again"));
    await store.forgetNodes(keys("n2"));
    expect(await eventOf(store, "forget")).toMatchObject({ resource: "node/n1" });
    expect(new Set((await auditOf(store)).map(({ id }) => id))).toEqual(new Set(["forget"]));
  });
}

function listCases(suite: Suite): void {
  suite("events are listed by kind, newest first, in pages, since a time", async (store, open) => {
    const other = await open();
    const events = Array.from({ length: 25 }, (_, at) =>
      // Several of one time, in an order of their own.
      refusalOf(`r${String((at * 7) % 25).padStart(2, "0")}`, 1_000 + Math.floor(at / 3)),
    );
    await store.recordAudit(events.slice(0, 13));
    await other.recordAudit(events.slice(13));
    const expected = events.toSorted((a, b) => b.atMs - a.atMs || (a.id < b.id ? 1 : -1));
    for (const limit of [1, 4, 25, 100]) {
      expect(await auditOf(store, "refusal", limit)).toEqual(expected);
    }
    expect(await auditOf(store, "change")).toEqual([]);
    const since = await other.listAudit({
      kind: "refusal",
      before: undefined,
      sinceMs: 1_005,
      limit: 100,
    });
    expect(since).toEqual(expected.filter(({ atMs }) => atMs >= 1_005));
  });

  suite("an event that is recorded again stays as it was", async (store) => {
    const event = refusalOf("r", 5_000, { omitted: 3, principal: "", peer: "ü/x" });
    await store.recordAudit([event]);
    await store.recordAudit([{ ...event, omitted: 9 }, refusalOf("s", 5_000)]);
    expect(await auditOf(store, "refusal")).toEqual([refusalOf("s", 5_000), event]);
  });

  suite("more events at once than may be are refused", async (store) => {
    const many = Array.from({ length: 101 }, (_, at) => refusalOf(`r${at}`, at));
    await expect(store.recordAudit(many)).rejects.toThrow(RangeError);
    expect(await auditOf(store, "refusal")).toEqual([]);
  });
}

function trimCases(suite: Suite): void {
  suite(
    "old events go, and the oldest of too many, of one kind and so many at once",
    async (store) => {
      await store.recordAudit([10, 20, 30, 40, 50, 60].map((ms) => refusalOf(`r${ms}`, ms)));
      await store.createTag(settingsOf("t"), { by: noteOf("kept") });
      const left = async () =>
        (await auditOf(store, "refusal")).map(({ atMs }) => atMs).toReversed();
      const trim = { kind: "refusal", beforeMs: 0, keep: 100, limit: 100 } as const;
      expect(await store.trimAudit(trim)).toBe(0);
      expect(await store.trimAudit({ ...trim, beforeMs: 20 })).toBe(1);
      expect(await left()).toEqual([20, 30, 40, 50, 60]);
      expect(await store.trimAudit({ ...trim, keep: 2, limit: 2 })).toBe(2);
      expect(await left()).toEqual([40, 50, 60]);
      expect(await store.trimAudit({ ...trim, keep: 2, limit: 2 })).toBe(1);
      expect(await store.trimAudit({ ...trim, keep: 2 })).toBe(0);
      expect(await left()).toEqual([50, 60]);
      expect(await store.trimAudit({ ...trim, beforeMs: 1_000, keep: 0 })).toBe(2);
      expect(await left()).toEqual([]);
      expect((await auditOf(store)).map(({ id }) => id)).toEqual(["kept"]);
    },
  );

  suite("the events of one push out nobody else's, and all together are bounded", async (store) => {
    // Whoever floods is the newest too.
    const flood = refusalsOf("flood", 90).map((event) => ({ ...event, atMs: event.atMs + 5_000 }));
    for (const events of [refusalsOf("b", 5), refusalsOf("", 20), flood])
      await store.recordAudit(events);
    const counts = async (): Promise<Record<string, number>> => {
      const found: Record<string, number> = {};
      for (const { principal } of await auditOf(store, "refusal")) {
        found[principal] = (found[principal] ?? 0) + 1;
      }
      return found;
    };
    const trim = { kind: "refusal", beforeMs: 0, keep: 45, limit: 1_000 } as const;
    expect(await store.trimAudit({ ...trim, limit: 30 })).toBe(30);
    expect(await counts()).toEqual({ "": 20, b: 5, flood: 60 });
    expect(await store.trimAudit(trim)).toBe(40);
    expect(await store.trimAudit(trim)).toBe(0);
    expect(await counts()).toEqual({ "": 20, b: 5, flood: 20 });
    // The newest of each are left.
    const left = (await auditOf(store, "refusal")).map(({ id }) => id);
    expect(left.slice(0, 20)).toEqual(
      flood
        .map(({ id }) => id)
        .toReversed()
        .slice(0, 20),
    );
    // More principals than rows may be kept: the oldest go.
    await store.recordAudit(
      ["w", "x", "y", "z"].map((one) => refusalOf(one, 9_000, { principal: one })),
    );
    await store.trimAudit({ ...trim, keep: 3 });
    expect((await auditOf(store, "refusal")).map(({ id }) => id)).toEqual(["z", "y", "x"]);
  });
}
