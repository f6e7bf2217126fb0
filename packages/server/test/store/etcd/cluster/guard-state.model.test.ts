// A cluster's log, its revision and its terms, set back in every way, under processes that look at it.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  GuardState,
  isElected,
  type Sight,
  type StoreRecord,
} from "../../../../src/store/etcd/cluster/guard-state.ts";

interface World {
  clusterId: string;
  /** Of Raft's log. */
  index: bigint;
  revision: bigint;
  /** Of the last write of a server. */
  written: bigint;
  term: bigint;
  record: StoreRecord;
  recordedTerm: bigint;
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("write" as const), count: fc.nat(30) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("serve" as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("entry" as const), count: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("elect" as const) }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("look" as const), who: fc.nat(2), late: fc.nat(3) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("start" as const), who: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("accept" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("snapshot" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("restore" as const),
      sameToken: fc.boolean(),
      bump: fc.constantFrom(0n, 0n, 1_000_000n),
    }),
  },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Walk {
  world: World;
  /** What a backup has of it. */
  backup: World;
  /** Whether the world is a restored one that nobody accepted. */
  isBack = false;
  accepts = 0n;
  readonly guards = [new GuardState(), new GuardState(), new GuardState()];
  /** Which of them have noticed. */
  readonly noticed = new Set<GuardState>();

  constructor() {
    const record = this.#record({ clusterId: "c1", index: 8n, revision: 1n });
    const place = { clusterId: "c1", index: 8n, revision: 1n, written: 0n };
    const world = { ...place, term: 2n, record, recordedTerm: 2n };
    this.world = world;
    this.backup = world;
  }

  take(next: Step): void {
    const { world } = this;
    switch (next.do) {
      case "write":
        world.index += BigInt(next.count);
        world.revision += BigInt(next.count);
        return;
      case "serve":
        world.index += 1n;
        world.revision += 1n;
        world.written = world.revision;
        return;
      case "entry":
        world.index += BigInt(next.count);
        return;
      case "elect":
        world.term += 1n;
        world.index += 1n;
        return;
      case "look":
        return this.#look(next.who, BigInt(next.late));
      case "start": {
        const old = this.guards[next.who];
        if (old !== undefined) this.noticed.delete(old);
        this.guards[next.who] = new GuardState();
        return;
      }
      case "accept":
        this.accepts += 1n;
        world.record = this.#record(world);
        world.recordedTerm = world.term;
        this.isBack = false;
        this.noticed.clear();
        return;
      case "snapshot":
        if (!this.isBack) this.backup = { ...world };
        return;
      case "restore": {
        const { record, recordedTerm, revision, written, clusterId } = this.backup;
        // A new log: the members, and an election.
        this.world = {
          clusterId: next.sameToken ? clusterId : `${clusterId}'`,
          index: 4n,
          term: 2n,
          revision: revision + next.bump,
          written,
          record,
          recordedTerm,
        };
        this.isBack = true;
      }
    }
  }

  #record({
    clusterId,
    index,
    revision,
  }: Pick<World, "clusterId" | "index" | "revision">): StoreRecord {
    const generation = this.accepts;
    const name = String(generation);
    return { storeId: "s", incarnation: name, generation, clusterId, lead: index - revision };
  }

  #look(who: number, late: bigint): void {
    const { world } = this;
    const guard = this.guards[who] as GuardState;
    const sentAt = guard.seen;
    const { clusterId, revision, term, record, recordedTerm, written } = world;
    // The index is asked for later.
    world.index += late;
    const sight: Sight = { clusterId, revision, term, lead: world.index - revision, written };
    const { fenced: found, lost } = guard.judge(record, recordedTerm, sight, sentAt);
    if (!this.isBack) {
      expect([found, lost]).toEqual(["", ""]);
      guard.elected(record, term);
      if (term > recordedTerm) world.recordedTerm = term;
      return;
    }
    const isKnown =
      clusterId !== record.clusterId || sight.lead < record.lead || this.noticed.has(guard);
    if (isKnown) expect(found).not.toBe("");
    if (found === "") guard.elected(record, term);
    else this.noticed.add(guard);
  }
}

test("a cluster that goes on is never taken for one that went back, and a restored one always is", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (path) => {
      const walk = new Walk();
      for (const next of path) walk.take(next);
    }),
    { numRuns: 3_000 },
  );
});

const RECORD: StoreRecord = {
  storeId: "s",
  incarnation: "i",
  generation: 1n,
  clusterId: "c",
  lead: 7n,
};
const SIGHT: Sight = { clusterId: "c", revision: 100n, term: 5n, lead: 7n, written: 90n };
const NEVER = new GuardState().seen;

test("each number that went back is told by itself", () => {
  const judged = (sight: Partial<Sight>, recordedTerm = 5n): string => {
    const guard = new GuardState();
    expect(guard.judge(RECORD, 5n, SIGHT, guard.seen).fenced).toBe("");
    guard.elected(RECORD, SIGHT.term);
    return guard.judge(RECORD, recordedTerm, { ...SIGHT, ...sight }, guard.seen).fenced;
  };
  expect(judged({})).toBe("");
  expect(judged({ lead: 8n, revision: 101n, term: 6n })).toBe("");
  expect(judged({ clusterId: "d" })).toContain("not the one that was accepted");
  expect(judged({ lead: 6n })).toContain("restored from a snapshot");
  expect(judged({ revision: 99n })).toContain("this server has seen later changes");
  expect(judged({ revision: 900n, written: 89n })).toContain("this server has seen later changes");
  expect(judged({ term: 4n }, 4n)).toContain("this server has seen later changes");
  const fresh = new GuardState();
  expect(fresh.judge(RECORD, 6n, SIGHT, NEVER).fenced).toContain("had a later term");
});

test("an answer that was overtaken is judged by what had been seen when it was asked for", () => {
  const guard = new GuardState();
  expect(guard.judge(RECORD, 5n, SIGHT, NEVER).fenced).toBe("");
  const sentAt = guard.seen;
  expect(guard.checkHeader(RECORD, "c", 200n, sentAt)).toBe("");
  expect(guard.checkHeader(RECORD, "c", 150n, sentAt)).toBe("");
  expect(guard.checkHeader(RECORD, "c", 150n, guard.seen)).not.toBe("");
  // It stays so, until somebody accepts.
  expect(guard.judge(RECORD, 5n, { ...SIGHT, revision: 900n }, guard.seen).fenced).not.toBe("");
  const accepted = { ...RECORD, generation: 2n };
  expect(guard.judge(accepted, 5n, { ...SIGHT, revision: 50n }, guard.seen).fenced).toBe("");
  // And a record of before the accept is one that went back.
  expect(guard.judge(RECORD, 5n, { ...SIGHT, revision: 900n }, guard.seen).fenced).not.toBe("");
});

test("looks that were under way together when a store was accepted are no proof against it", () => {
  const guard = new GuardState();
  expect(guard.judge(RECORD, 5n, { ...SIGHT, revision: 900n }, NEVER).fenced).toBe("");
  guard.elected(RECORD, 9n);
  const sentAt = guard.seen;
  // The accepted copy is an earlier one. Both looks were sent before anybody here knew of it.
  const accepted = { ...RECORD, generation: 2n };
  for (const revision of [100n, 101n]) {
    const judged = guard.judge(accepted, 5n, { ...SIGHT, revision }, sentAt);
    expect(judged).toEqual({ fenced: "", lost: "" });
  }
});

test("a look that was overtaken by an election is no proof of a lower term", () => {
  const guard = new GuardState();
  guard.judge(RECORD, 5n, SIGHT, NEVER);
  const sentAt = guard.seen;
  guard.elected(RECORD, 6n);
  expect(guard.judge(RECORD, 5n, SIGHT, sentAt).fenced).toBe("");
  expect(guard.judge(RECORD, 5n, SIGHT, guard.seen).fenced).not.toBe("");
});

test("only a member that knows a leader of its own term tells a term to remember", () => {
  const header = { raftTerm: "5" };
  expect(isElected({ header, leader: "77", raftTerm: "5" })).toBe(true);
  expect(isElected({ header, leader: "0", raftTerm: "5" })).toBe(false);
  expect(isElected({ header, leader: "77", raftTerm: "6" })).toBe(false);
});

test("what one sight shows to be lost is told with that sight alone, and not of a copy", () => {
  const guard = new GuardState();
  guard.judge(RECORD, 5n, SIGHT, NEVER);
  guard.wrote(RECORD, 101n);
  const judged = (sight: Partial<Sight>, record = RECORD) =>
    guard.judge(record, 5n, { ...SIGHT, revision: 110n, ...sight }, guard.seen);
  expect(judged({}).lost).toContain("this server has seen later changes");
  expect(judged({ clusterId: "d" })).toMatchObject({ lost: "" });
  // It stays refused, though another look finds nothing.
  const again = judged({ written: 101n });
  expect(again.fenced).toContain("this server has seen later changes");
  expect(again.lost).toBe("");
});

test("a mark of another server counts until somebody accepts", () => {
  const guard = new GuardState();
  const marked = { ...RECORD, wentBack: "it lost something" };
  const { fenced } = guard.judge(marked, 5n, SIGHT, NEVER);
  expect(fenced).toBe("a server saw that the store went back: it lost something");
  const accepted = { ...RECORD, generation: 2n };
  expect(guard.judge(accepted, 5n, SIGHT, guard.seen).fenced).toBe("");
});

test("while an accept is not over nothing is granted", () => {
  const accepting = { ...RECORD, accepting: "a" };
  const { fenced, lost } = new GuardState().judge(accepting, 5n, SIGHT, NEVER);
  expect([fenced, lost]).toEqual([expect.stringContaining("is not over"), ""]);
});

test("a record of before an accept is lost where the cluster is the one of that record", () => {
  const later = "the cluster is an older copy: this server has seen later changes";
  for (const clusterId of ["c", "d"]) {
    const guard = new GuardState();
    guard.judge({ ...RECORD, generation: 2n }, 5n, SIGHT, NEVER);
    const judged = guard.judge(RECORD, 5n, { ...SIGHT, clusterId }, guard.seen);
    expect(judged).toEqual({ fenced: later, lost: clusterId === "c" ? later : "" });
  }
});

test("nothing is written to a new store yet, and an answer to a read shows no write", () => {
  const guard = new GuardState();
  const empty = { ...SIGHT, written: 0n };
  expect(guard.judge(RECORD, 5n, empty, NEVER).fenced).toBe("");
  // Two reads at one revision are no proof of anything.
  for (let read = 0; read < 2; read++)
    expect(guard.checkHeader(RECORD, "c", 101n, guard.seen)).toBe("");
  const later = { ...empty, revision: 101n };
  expect(guard.judge(RECORD, 5n, later, guard.seen).fenced).toBe("");
});

test("an answer from another cluster is refused from then on", () => {
  const guard = new GuardState();
  guard.judge(RECORD, 5n, SIGHT, NEVER);
  expect(guard.checkHeader(RECORD, "d", 200n, guard.seen)).toContain("copied");
  expect(guard.judge(RECORD, 5n, { ...SIGHT, revision: 300n }, guard.seen).fenced).not.toBe("");
});

test("what belongs to another history than the present one is not remembered", () => {
  const guard = new GuardState();
  const accepted = { ...RECORD, generation: 2n };
  guard.judge(accepted, 5n, SIGHT, NEVER);
  const before = guard.seen;
  guard.wrote(RECORD, 900n);
  guard.elected(RECORD, 9n);
  expect(guard.checkHeader(RECORD, "d", 1n, before)).toBe("");
  expect(guard.seen).toEqual(before);
  guard.wrote(accepted, 110n);
  guard.elected(accepted, 6n);
  expect(guard.seen).toMatchObject({ revision: 110n, written: 110n, term: 6n });
  guard.wrote(accepted, 105n);
  guard.elected(accepted, 4n);
  expect(guard.seen).toMatchObject({ revision: 110n, written: 110n, term: 6n });
});

test("a cluster without the record is the one that had it, or it is another one", () => {
  const guard = new GuardState();
  expect(guard.hasLost(SIGHT, guard.seen)).toBe(false);
  guard.judge(RECORD, 5n, SIGHT, NEVER);
  // A member that knows nothing later has it too.
  expect(guard.hasLost(SIGHT, guard.seen)).toBe(true);
  const later = { ...SIGHT, revision: 101n };
  expect(guard.hasLost(later, guard.seen)).toBe(true);
  expect(guard.hasLost({ ...later, clusterId: "d" }, guard.seen)).toBe(false);
  expect(guard.hasLost({ ...later, revision: 3n }, guard.seen)).toBe(false);
  expect(guard.hasLost({ ...later, lead: 6n }, guard.seen)).toBe(false);
});
