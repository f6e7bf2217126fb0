import { createHash } from "node:crypto";
import type {
  KeptCallers,
  KeptContents,
  KeptLease,
  KeptNode,
  SeenIssuing,
  Tag,
  Token,
} from "@idmint/core/server";
import { TAG_COLUMNS, tagFromRow, type TagRow, valuesOfTag } from "../shared/tag-row.ts";

/** Which run of which machine wrote a file, under which lock, and as which file: by these a copy of it is known. */
export interface Origin {
  readonly boot: string;
  readonly lock: string;
  readonly file: string;
}

const FORMAT = "idmint worker cache 1";

type Fields = Readonly<Record<string, unknown>>;

/**
 * What the file holds: a line with the digest of the next one; JSON, whose fields each have their own meaning; and the list
 * of tokens, also JSON, whose digest the former names. `offsetMs`: how far the machine's monotonic clock is ahead of the one
 * that the leases have their times of.
 */
export function textOf(contents: KeptContents, origin: Origin, offsetMs: number): string {
  const { reportedMs, incarnation, leases, tags, node, issuing, callers } = contents;
  const list = callers === undefined ? NO_LIST : listOf(callers.tokens);
  const body = JSON.stringify({
    format: FORMAT,
    origin,
    reportedMs,
    incarnation,
    leases: leases.map((lease) => ({
      ...lease,
      token: String(lease.token),
      epoch: String(lease.epoch),
      at: lease.at + offsetMs,
    })),
    node:
      node === undefined
        ? null
        : // Infinity is not JSON.
          { id: node.id, parts: node.parts.map(([part, at]) => [part, String(at + offsetMs)]) },
    issuing: issuing.map(({ revision, ...rest }) => ({ ...rest, revision: String(revision) })),
    callers:
      callers === undefined
        ? null
        : { tokens: list.digest, believedUntil: String(callers.believedUntil + offsetMs) },
    tags: tags.map((tag) =>
      valuesOfTag(tag).map((value) => (typeof value === "bigint" ? String(value) : value)),
    ),
  });
  return `${digestOf(body)}\n${body}\n${list.text}\n`;
}

interface ListText {
  readonly text: string;
  readonly digest: string;
}

const NO_LIST: ListText = { text: "", digest: "" };
/** A list may have 10,000 tokens, and the file is written each second: the text of a list is made once. */
const listTexts = new WeakMap<readonly Token[], ListText>();

function listOf(tokens: readonly Token[]): ListText {
  const known = listTexts.get(tokens);
  if (known !== undefined) return known;
  const text = JSON.stringify(tokens);
  const made = { text, digest: digestOf(text) };
  listTexts.set(tokens, made);
  return made;
}

/** What a text holds, or why it says nothing. */
export function contentsFrom(
  text: string,
  origin: Origin,
  offsetMs: number,
): { readonly found: KeptContents } | { readonly ignored: string } {
  const [digest, body = "", list = ""] = text.split("\n");
  if (digest !== digestOf(body)) return { ignored: "it is spoiled" };
  try {
    const fields = JSON.parse(body) as Fields;
    if (fields["format"] !== FORMAT) return { ignored: "it is of another release" };
    const { boot, lock, file } = fields["origin"] as Fields;
    if (boot !== origin.boot) {
      return { ignored: "it is of another machine, or from before this one was started" };
    }
    if (lock !== origin.lock) return { ignored: "it is a copy" };
    if (file !== origin.file) return { ignored: "it is a copy" };
    const callers = fields["callers"] as CallersFields | null;
    if (callers !== null && callers.tokens !== digestOf(list)) return { ignored: "it is spoiled" };
    return {
      found: {
        reportedMs: Number(fields["reportedMs"]),
        incarnation: fields["incarnation"] as string | undefined,
        leases: (fields["leases"] as Fields[]).map((lease) => leaseFrom(lease, offsetMs)),
        tags: (fields["tags"] as (string | null)[][]).map(tagFrom),
        node: nodeFrom(fields["node"] as NodeFields | null, offsetMs),
        issuing: (fields["issuing"] as IssuingFields[]).map(issuingFrom),
        callers: callers === null ? undefined : callersFrom(callers, list, offsetMs),
      },
    };
  } catch {
    return { ignored: "it is of another release" };
  }
}

function digestOf(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}

/** The digest says that the fields are those that were written. */
function leaseFrom(fields: Fields, offsetMs: number): KeptLease {
  const lease = fields as unknown as Omit<KeptLease, "token" | "epoch"> & {
    readonly token: string;
    readonly epoch: string;
  };
  const [token, epoch] = [BigInt(lease.token), BigInt(lease.epoch)];
  return { ...lease, token, epoch, at: lease.at - offsetMs };
}

interface NodeFields {
  readonly id: string;
  readonly parts: readonly (readonly [string, string])[];
}

function nodeFrom(fields: NodeFields | null, offsetMs: number): KeptNode | undefined {
  if (fields === null) return undefined;
  const parts = fields.parts.map(([part, at]) => [part, Number(at) - offsetMs] as const);
  return { id: fields.id, parts };
}

interface IssuingFields extends Omit<SeenIssuing, "revision"> {
  readonly revision: string;
}

function issuingFrom({ name, incarnation, revision, stoppedAtMs }: IssuingFields): SeenIssuing {
  return { name, incarnation, revision: BigInt(revision), stoppedAtMs };
}

interface CallersFields {
  /** Digest of the list. */
  readonly tokens: string;
  readonly believedUntil: string;
}

function callersFrom(fields: CallersFields, list: string, offsetMs: number): KeptCallers {
  const tokens = JSON.parse(list) as readonly Token[];
  return { tokens, believedUntil: Number(fields.believedUntil) - offsetMs };
}

function tagFrom(values: readonly (string | null)[]): Tag {
  const row = Object.fromEntries(TAG_COLUMNS.map((column, at) => [column, values[at] ?? null]));
  return tagFromRow({ ...row, redis: row["redis"] === "1" } as unknown as TagRow);
}
