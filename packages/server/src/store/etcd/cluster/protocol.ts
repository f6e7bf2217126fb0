// The part of etcd's API v3 that the store speaks, as rpc.proto and kv.proto of etcd number it.
import type { MethodDefinition } from "@grpc/proto-loader";
import { fromJSON } from "@grpc/proto-loader";

/** 64-bit integers are decimal texts. */
type Int = string;

interface Header {
  readonly clusterId: Int;
  readonly memberId: Int;
  readonly revision: Int;
  readonly raftTerm: Int;
}

export interface KeyValue {
  readonly key: Buffer;
  /** Revision at which it was written last. */
  readonly modRevision: Int;
  readonly value: Buffer;
}

export interface Range {
  readonly key: Buffer;
  /** First key that is not meant; absent: `key` alone. */
  readonly rangeEnd?: Buffer;
  readonly limit?: number;
  /** Reads as of then; absent: as of now. */
  readonly revision?: Int;
  /** By key, highest first; or by the time they were written, last first. Absent: by key, lowest first. */
  readonly order?: "descending" | "newest";
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
}

interface RangeAnswer {
  readonly header: Header | null;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: Int;
}

export type Compare =
  | {
      readonly key: Buffer;
      /** 0 for a key that is not there. */
      readonly modRevision: Int;
    }
  | { readonly key: Buffer; readonly value: Buffer }
  | {
      readonly key: Buffer;
      /** First key that is not meant. */
      readonly rangeEnd: Buffer;
      /** All keys that are there were written last at an earlier revision. */
      readonly writtenBefore: Int;
    };

interface Put {
  readonly key: Buffer;
  readonly value: Buffer;
  /** The key goes with this lease. */
  readonly lease?: Int;
}

interface Removal {
  readonly key: Buffer;
  /** First key that is not meant; absent: `key` alone. */
  readonly rangeEnd?: Buffer;
}

/** One operation of a transaction. */
export type Op =
  | { readonly range: Range }
  | { readonly put: Put }
  | { readonly remove: Removal }
  | { readonly txn: Txn };

/** `success` is done where all of `compare` holds, else `failure`. */
interface Txn {
  readonly compare: readonly Compare[];
  readonly success: readonly Op[];
  readonly failure: readonly Op[];
}

export interface OpAnswer {
  readonly range?: RangeAnswer | null;
  readonly txn?: TxnAnswer | null;
}

interface TxnAnswer {
  /** Of the transaction as a whole; null in one within another. */
  readonly header: Header | null;
  readonly succeeded: boolean;
  readonly answers: readonly OpAnswer[];
}

export interface StatusAnswer {
  readonly header: Header;
  readonly version: string;
  readonly dbSize: Int;
  readonly leader: Int;
  readonly raftIndex: Int;
  readonly raftTerm: Int;
  /** Alarms that are raised, in etcd's words. */
  readonly errors: readonly string[];
}

/** What a watch is told. */
export interface WatchAnswer {
  /** Answers the request for one key. */
  readonly created: boolean;
  /** The watch of that key is over, and `reason` says why. */
  readonly canceled: boolean;
  readonly reason: string;
  readonly events: readonly object[];
}

/** What each method takes and answers. */
export interface Methods {
  readonly authenticate: {
    readonly request: { readonly name: string; readonly password: string };
    readonly answer: { readonly token: string };
  };
  readonly leaseGrant: {
    readonly request: { readonly ttl: Int };
    readonly answer: { readonly header: Header; readonly id: Int; readonly ttl: Int };
  };
  readonly leaseKeepAlive: {
    readonly request: { readonly id: Int };
    /** A lease that is over has a ttl of 0. */
    readonly answer: { readonly header: Header; readonly ttl: Int };
  };
  readonly range: { readonly request: Range; readonly answer: RangeAnswer };
  readonly status: { readonly request: object; readonly answer: StatusAnswer };
  readonly txn: { readonly request: Txn; readonly answer: TxnAnswer };
  /** A stream: one request for each key, and an answer for each change from then on. */
  readonly watch: {
    readonly request: { readonly create: { readonly key: Buffer } };
    readonly answer: WatchAnswer;
  };
}

export type Method = keyof Methods;

/** Fields of a message: `name: [type, number]`, with "repeated " before the type of a list. */
type Fields = Readonly<Record<string, readonly [type: string, id: number]>>;

const MESSAGES: Readonly<Record<string, Fields>> = {
  Header: {
    clusterId: ["uint64", 1],
    memberId: ["uint64", 2],
    revision: ["int64", 3],
    raftTerm: ["uint64", 4],
  },
  KeyValue: { key: ["bytes", 1], modRevision: ["int64", 3], value: ["bytes", 5] },
  Range: {
    key: ["bytes", 1],
    rangeEnd: ["bytes", 2],
    limit: ["int64", 3],
    revision: ["int64", 4],
    // etcd's SortOrder, of which DESCEND is 2, and SortTarget: KEY is 0 and MOD 3. All are numbers in a varint.
    sortOrder: ["int32", 5],
    sortTarget: ["int32", 6],
    keysOnly: ["bool", 8],
    countOnly: ["bool", 9],
  },
  RangeAnswer: {
    header: ["Header", 1],
    kvs: ["repeated KeyValue", 2],
    more: ["bool", 3],
    count: ["int64", 4],
  },
  Put: { key: ["bytes", 1], value: ["bytes", 2], lease: ["int64", 3] },
  Removal: { key: ["bytes", 1], rangeEnd: ["bytes", 2] },
  // Of the comparisons “is equal” is used, which is result 0, and “is less”, 2: of the last change's revision, target 2, or of the
  // value, 3.
  Compare: {
    result: ["int32", 1],
    target: ["int32", 2],
    key: ["bytes", 3],
    modRevision: ["int64", 6],
    value: ["bytes", 7],
    rangeEnd: ["bytes", 64],
  },
  Op: { range: ["Range", 1], put: ["Put", 2], remove: ["Removal", 3], txn: ["Txn", 4] },
  OpAnswer: { range: ["RangeAnswer", 1], txn: ["TxnAnswer", 4] },
  Txn: {
    compare: ["repeated Compare", 1],
    success: ["repeated Op", 2],
    failure: ["repeated Op", 3],
  },
  TxnAnswer: {
    header: ["Header", 1],
    succeeded: ["bool", 2],
    answers: ["repeated OpAnswer", 3],
  },
  LeaseGrant: { ttl: ["int64", 1] },
  LeaseGrantAnswer: { header: ["Header", 1], id: ["int64", 2], ttl: ["int64", 3] },
  LeaseKeepAlive: { id: ["int64", 1] },
  LeaseKeepAliveAnswer: { header: ["Header", 1], ttl: ["int64", 3] },
  Status: {},
  StatusAnswer: {
    header: ["Header", 1],
    version: ["string", 2],
    dbSize: ["int64", 3],
    leader: ["uint64", 4],
    raftIndex: ["uint64", 5],
    raftTerm: ["uint64", 6],
    errors: ["repeated string", 8],
  },
  WatchCreate: { key: ["bytes", 1] },
  Watch: { create: ["WatchCreate", 1] },
  // Which change it was makes no difference.
  WatchEvent: {},
  WatchAnswer: {
    created: ["bool", 3],
    canceled: ["bool", 4],
    reason: ["string", 6],
    events: ["repeated WatchEvent", 11],
  },
  Authenticate: { name: ["string", 1], password: ["string", 2] },
  AuthenticateAnswer: { header: ["Header", 1], token: ["string", 2] },
};

/** Service and method of etcd, and the messages by their names here. */
const PATHS: Readonly<Record<Method, readonly [service: string, method: string, message: string]>> =
  {
    authenticate: ["Auth", "Authenticate", "Authenticate"],
    leaseGrant: ["Lease", "LeaseGrant", "LeaseGrant"],
    leaseKeepAlive: ["Lease", "LeaseKeepAlive", "LeaseKeepAlive"],
    range: ["KV", "Range", "Range"],
    status: ["Maintenance", "Status", "Status"],
    txn: ["KV", "Txn", "Txn"],
    watch: ["Watch", "Watch", "Watch"],
  };

function messageOf(fields: Fields): object {
  const entries = Object.entries(fields).map(([name, [type, id]]) => {
    const repeated = type.startsWith("repeated ");
    const field = repeated ? { rule: "repeated", type: type.slice(9), id } : { type, id };
    return [name, field] as const;
  });
  return { fields: Object.fromEntries(entries) };
}

function loaded(): Readonly<Record<Method, MethodDefinition<object, object>>> {
  const messages = Object.entries(MESSAGES).map(([name, fields]) => {
    return [name, messageOf(fields)] as const;
  });
  const rows = Object.entries(PATHS);
  const services = rows.map(([name, [, , message]]) => {
    const method = { requestType: message, responseType: `${message}Answer` };
    return [`${name}Service`, { methods: { [name]: method } }] as const;
  });
  const root = { nested: { etcd: { nested: Object.fromEntries([...messages, ...services]) } } };
  const found = fromJSON(root, { longs: String, defaults: true, keepCase: true });
  return Object.fromEntries(
    rows.map(([name]) => {
      const service = found[`etcd.${name}Service`] as Record<string, object>;
      return [name, service[name]];
    }),
  ) as Record<Method, MethodDefinition<object, object>>;
}

/** Where a method is, and how its messages are written. */
export interface Wire<Name extends Method> {
  readonly path: string;
  readonly write: (request: Methods[Name]["request"]) => Buffer;
  readonly read: (bytes: Buffer) => Methods[Name]["answer"];
}

export function wireOf<Name extends Method>(name: Name): Wire<Name> {
  definitions ??= loaded();
  const { requestSerialize, responseDeserialize } = definitions[name];
  const [service, method] = PATHS[name];
  return {
    path: `/etcdserverpb.${service}/${method}`,
    write: (request) => requestSerialize(onWire(name, request)),
    read: (bytes) => responseDeserialize(bytes) as Methods[Name]["answer"],
  };
}

let definitions: ReturnType<typeof loaded> | undefined;

function onWire(name: Method, request: object): object {
  if (name === "range") return rangeOnWire(request as Range);
  return name === "txn" ? txnOnWire(request as Txn) : request;
}

function rangeOnWire({ order, ...range }: Range): object {
  if (order === undefined) return range;
  return { ...range, sortOrder: 2, sortTarget: order === "newest" ? 3 : 0 };
}

function txnOnWire({ compare, success, failure }: Txn): object {
  return {
    compare: compare.map(compareOnWire),
    success: success.map(opOnWire),
    failure: failure.map(opOnWire),
  };
}

function compareOnWire(compare: Compare): object {
  if ("value" in compare) return { target: 3, ...compare };
  if ("modRevision" in compare) return { target: 2, ...compare };
  const { writtenBefore, ...range } = compare;
  return { target: 2, result: 2, modRevision: writtenBefore, ...range };
}

function opOnWire(op: Op): object {
  if ("range" in op) return { range: rangeOnWire(op.range) };
  return "txn" in op ? { txn: txnOnWire(op.txn) } : op;
}
