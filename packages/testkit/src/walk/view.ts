// What a walk makes its calls of: the rows as the model has them, what was granted, and names.
import type { AuditNote, GiveBackRequest, Tag } from "@idmint/core/server";
import type { MemoryDatabase } from "../memory/database.ts";
import { noteOf } from "../store/suite-audit.ts";
import { DAY_MS, noonZone } from "../store/support.ts";

/** Ids of a tag and a day that somebody has. */
interface Issued {
  readonly tag: string;
  /** From today; undefined: the tag has no periods. */
  readonly day: number | undefined;
  readonly from: bigint;
  readonly to: bigint;
}

export class View {
  /** Newest first. */
  grants: readonly GiveBackRequest[] = [];
  issued: readonly Issued[] = [];
  /** Of the store, as a poll answered it last. */
  incarnation = "";
  /** Of its list of tokens. */
  listVersion = "";
  readonly zone: { readonly timeZone: string; readonly offsetMs: number } = noonZone();
  readonly #model: () => MemoryDatabase;
  #numbers = 0;

  constructor(model: () => MemoryDatabase) {
    this.#model = model;
  }

  get database(): MemoryDatabase {
    return this.#model();
  }

  row(tag: string): Tag | undefined {
    return this.database.rows.get(tag);
  }

  /** A number that was not there before. */
  next(): number {
    return ++this.#numbers;
  }

  by(): AuditNote {
    return noteOf(`n${this.next()}`);
  }

  startOf(day: number): string {
    return new Date(Date.now() + this.zone.offsetMs + day * DAY_MS).toISOString().slice(0, 10);
  }

  /** Days from today, in the zone of the walk. */
  dayOf(start: string): number {
    const today = Math.floor((Date.now() + this.zone.offsetMs) / DAY_MS);
    return Date.parse(start) / DAY_MS - today;
  }

  versionOf(tag: string, which: string): bigint {
    const right = this.row(tag)?.version ?? 0n;
    return { none: 0n, right, ahead: right + 1n }[which] ?? 0n;
  }

  revisionOf(tag: string, which: string): bigint | undefined {
    const right = this.row(tag)?.revision ?? 1n;
    return { none: undefined, right, wrong: right + 1_000n }[which];
  }

  takeBack({ tag, from, to }: GiveBackRequest): void {
    this.issued = this.issued.flatMap((range) => {
      if (range.tag !== tag || range.to !== to || range.from > from) return [range];
      return range.from === from ? [] : [{ ...range, to: from - 1n }];
    });
  }
}
