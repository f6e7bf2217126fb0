import { assertNoViolations, IdmintError, tagNameViolation } from "@idmint/core";
import { comesFrom } from "@idmint/core/kinds";
import {
  type Holder,
  holderOf,
  type LedgerPage,
  type LedgerPlace,
  type LedgerRow,
  type LedgerStore,
  type Tag,
  tagNotFound,
  type TagStore,
} from "@idmint/core/server";
import type { AdminGate } from "../admin-gate.ts";
import type { DecodeService } from "../issue/decode.ts";
import type { Ledger } from "../ledger.ts";
import { decodePageToken, encodePageToken, pageLimitOf, pageSizeViolation } from "../page-token.ts";

type Value = Parameters<DecodeService["decode"]>[1];

/** Who was given an id. */
export interface FoundHolder extends Omit<Holder, "why"> {
  /** The number behind the id. */
  readonly id: bigint;
  readonly why: Holder["why"] | "NOT_GRANTED";
}

export interface LookupIdPorts {
  readonly store: LedgerStore & TagStore;
  readonly decoder: DecodeService;
  /** Undefined: this server writes none. */
  readonly ledger: Pick<Ledger, "flush"> | undefined;
  readonly gate: AdminGate;
}

/** Says who was given which ids, by the ledger. */
export class LookupIdService {
  readonly #ports: LookupIdPorts;

  constructor(ports: LookupIdPorts) {
    this.#ports = ports;
  }

  async lookup(name: string, value: Value): Promise<FoundHolder> {
    const { store, decoder, gate } = this.#ports;
    const { number: id } = await decoder.decode(name, value);
    await this.#ports.ledger?.flush();
    await this.#read(name);
    const findings = await gate.run(() => store.findInLedger({ tag: name, id }));
    const holder = holderOf(findings);
    // The floor as it was after the rows were read: an id above it was nobody's then.
    const { floor } = await this.#read(name);
    const isUnknown = holder.why === "UNKNOWN" || holder.why === "FORGOTTEN";
    return { ...holder, id, ...(isUnknown && id > floor ? { why: "NOT_GRANTED" } : {}) };
  }

  async list(query: {
    readonly tag: string;
    readonly pageSize: number;
    readonly pageToken: string;
  }): Promise<{ readonly rows: readonly LedgerRow[]; readonly nextPageToken: string }> {
    const { tag, pageSize, pageToken } = query;
    const list = ["ledger", tag];
    const after = placeOf(decodePageToken(pageToken, list));
    assertNoViolations(
      tagNameViolation("tag", tag),
      pageSizeViolation(pageSize),
      after === "no place"
        ? {
            field: "page_token",
            description: "belongs to another list: send it with the same tag",
            reason: "INVALID_PAGE_TOKEN",
          }
        : undefined,
    );
    if (after === "no place") throw new Error("a violation went missing");
    await this.#ports.ledger?.flush();
    await this.#read(tag);
    const { store, gate } = this.#ports;
    const limit = pageLimitOf(pageSize);
    const page = await gate.run(() => store.listLedger({ tag, after, limit }));
    return { rows: page.rows, nextPageToken: tokenOf(page, list) };
  }

  async #read(name: string): Promise<Tag> {
    const { store, gate } = this.#ports;
    const [tag] = await gate.run(() => store.getTags([name]));
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    if (!comesFrom(tag.kind, "segments")) throw withoutLedger(name, tag.kind.kind);
    return tag;
  }
}

function tokenOf({ next }: LedgerPage, list: readonly string[]): string {
  if (next === undefined) return "";
  return encodePageToken(`${next.position}:${next.database}`, list);
}

/** What a page of the list begins after. */
function placeOf(text: string | undefined): LedgerPlace | undefined | "no place" {
  if (text === "") return undefined;
  const [, position, database] = /^(\d{1,18}):([^/]{0,128})$/.exec(text ?? "") ?? [];
  if (position === undefined || database === undefined) return "no place";
  return { database, position: BigInt(position) };
}

function withoutLedger(tag: string, kind: string): IdmintError {
  return new IdmintError(
    "WRONG_KIND",
    `tag "${tag}" is of kind ${kind}; the ledger has tags of kind segment only. Of snowflakes, idmint id decode shows the worker id, and idmint worker list its holder`,
    { metadata: { tag, kind } },
  );
}
