import { createHash } from "node:crypto";
import type { AuditEvent, AuditKind, AuditPlace } from "@idmint/core/server";
import type { KeyValue, Range } from "../cluster/protocol.ts";

/**
 * The keys of a store, below its prefix. Names of tags have no slash, other names are written without one, and numbers have
 * so many digits that keys sort as they do.
 *
 * | key | value |
 * |---|---|
 * | `schema` | the steps of the schema |
 * | `store` | which cluster was accepted; see StoreRecord |
 * | `term` | the highest term of Raft that a server saw |
 * | `revision` | the store's revision |
 * | `issuing` | whether the servers are stopped, and at which revision that was changed last |
 * | `room` | nothing; see Session.write |
 * | `history` | a revision of etcd and when it was the present one, to see whether etcd forgets old ones |
 * | `tag/NAME` | a row, without the columns that are null |
 * | `change/REVISION` | the name of the tag whose last change has this revision |
 * | `pack/REVISION` | names of tags that an accept changed, with slashes between them: up to this revision, one for each |
 * | `period/TAG/START` | an ended period |
 * | `worker/TAG/DATA_CENTER/ID` | a worker id that was leased |
 * | `instance/TAG/DATA_CENTER/INSTANCE` | the worker id that the instance leased last |
 * | `node/ID` | a server, under a lease |
 * | `ask` | the nonce of an accept that asks servers what they were granted, and its lease; see claims.ts |
 * | `claimant/ID` | a server that answered, under that lease |
 * | `claim/ID/PAGE` | what it was granted, under that lease |
 * | `traffic` | what operators said of servers |
 * | `mark/TAG` | marks of Redis by generation |
 * | `token/ID` | a token of a caller; of the secret only the hash |
 * | `access` | a random text that changes with every token that comes or goes |
 * | `audit/KIND/TIME/ID!WHO` | who changed what, and who was refused; WHO is a digest of the principal |
 */
export class Keys {
  readonly prefix: string;

  /** `prefix` begins and ends with a slash. */
  constructor(prefix: string) {
    this.prefix = prefix;
  }

  one(
    name:
      | "access"
      | "ask"
      | "history"
      | "issuing"
      | "revision"
      | "room"
      | "schema"
      | "store"
      | "term"
      | "traffic",
  ): Buffer {
    return this.#key(name);
  }

  tag(name: string): Buffer {
    return this.#key(`tag/${name}`);
  }

  change(revision: bigint): Buffer {
    return this.#key(`change/${digits(revision)}`);
  }

  /** The changes of an accept up to a revision, in one key. */
  pack(revision: bigint): Buffer {
    return this.#key(`pack/${digits(revision)}`);
  }

  period(tag: string, start: string): Buffer {
    return this.#key(`period/${tag}/${start}`);
  }

  worker(tag: string, dataCenter: number, workerId: number): Buffer {
    return this.#key(`worker/${tag}/${digits(dataCenter)}/${digits(workerId)}`);
  }

  instance(tag: string, dataCenter: number, instance: string): Buffer {
    return this.#key(`instance/${tag}/${digits(dataCenter)}/${encodeURIComponent(instance)}`);
  }

  node(id: string): Buffer {
    return this.#key(`node/${encodeURIComponent(id)}`);
  }

  /** A server that says what it was granted. */
  claimant(id: string): Buffer {
    return this.#key(`claimant/${encodeURIComponent(id)}`);
  }

  claimants(): Range {
    return { key: this.#key("claimant/"), rangeEnd: this.#key("claimant0") };
  }

  /** One page of what it says. */
  claim(id: string, page: number): Buffer {
    return this.#key(`claim/${encodeURIComponent(id)}/${digits(page)}`);
  }

  claims(): Range {
    return { key: this.#key("claim/"), rangeEnd: this.#key("claim0") };
  }

  mark(tag: string): Buffer {
    return this.#key(`mark/${tag}`);
  }

  token(id: string): Buffer {
    return this.#key(`token/${encodeURIComponent(id)}`);
  }

  tokens(): Range {
    return { key: this.#key("token/"), rangeEnd: this.#key("token0") };
  }

  audit(kind: AuditKind, { atMs, id }: AuditPlace): Buffer {
    return this.#key(`audit/${kind}/${digits(atMs)}/${encodeURIComponent(id)}`);
  }

  /** An event of the audit trail. Whose it is can be told by the key alone; no identifier has a lower character than `!`. */
  auditOf({
    kind,
    principal,
    ...place
  }: AuditPlace & Pick<AuditEvent, "kind" | "principal">): Buffer {
    const who = createHash("sha256").update(principal).digest("hex").slice(0, WHO_DIGITS);
    return Buffer.concat([this.audit(kind, place), Buffer.from(`!${who}`)]);
  }

  /** All tags whose names come after `after` and begin with `prefix`. */
  tags(after: string, prefix: string): Range {
    const from = after < prefix ? this.tag(prefix) : next(this.tag(after));
    return { key: from, rangeEnd: end(this.tag(prefix)) };
  }

  /** The changes after a revision. */
  changes(since: bigint): Range {
    return { key: this.change(since + 1n), rangeEnd: this.#key("change0") };
  }

  /** The packs with changes after a revision. */
  packs(since: bigint): Range {
    return { key: this.pack(since + 1n), rangeEnd: this.#key("pack0") };
  }

  /** The periods of a tag that began before `before`; empty: all. */
  periods(tag: string, before: string): Range {
    const rangeEnd = before === "" ? this.#key(`period/${tag}0`) : this.period(tag, before);
    return { key: this.#key(`period/${tag}/`), rangeEnd };
  }

  /** The events of a kind since a time; `before`: those that are older. */
  audits(kind: AuditKind, sinceMs: number, before: AuditPlace | undefined): Range {
    const rangeEnd = before === undefined ? this.#key(`audit/${kind}0`) : this.audit(kind, before);
    return { key: this.audit(kind, { atMs: sinceMs, id: "" }), rangeEnd };
  }

  /** The workers of one data center, from a worker id on. */
  workersOf(tag: string, dataCenter: number, from = 0): Range {
    const rangeEnd = this.#key(`worker/${tag}/${digits(dataCenter)}0`);
    return { key: this.worker(tag, dataCenter, from), rangeEnd };
  }

  /** The workers of a tag after one of them. */
  workers(tag: string, after: { dataCenter: number; workerId: number } | undefined): Range {
    const from =
      after === undefined
        ? this.#key(`worker/${tag}/`)
        : next(this.worker(tag, after.dataCenter, after.workerId));
    return { key: from, rangeEnd: this.#key(`worker/${tag}0`) };
  }

  nodes(): Range {
    return { key: this.#key("node/"), rangeEnd: this.#key("node0") };
  }

  /** The last part of a key. */
  static lastOf({ key }: KeyValue): string {
    return key.toString().split("/").at(-1) ?? "";
  }

  /** Of a key of `changes` or `packs`. */
  static revisionOf(kv: KeyValue): bigint {
    return BigInt(Keys.lastOf(kv));
  }

  #key(rest: string): Buffer {
    return Buffer.from(this.prefix + rest);
  }
}

/** Enough to tell principals apart. */
const WHO_DIGITS = 16;
/** As many as the largest 64-bit integer has. */
const DIGITS = 19;

/** Of whom the event is that has this key. */
export function whoOf(key: Buffer): string {
  return key.toString("latin1", key.length - WHO_DIGITS);
}

function digits(value: bigint | number): string {
  return String(value).padStart(DIGITS, "0");
}

/** The key right after one. */
export function next(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.of(0)]);
}

/** The end of all keys that begin with one. */
function end(key: Buffer): Buffer {
  const copy = Buffer.from(key);
  copy[copy.length - 1] = (copy.at(-1) ?? 0) + 1;
  return copy;
}
