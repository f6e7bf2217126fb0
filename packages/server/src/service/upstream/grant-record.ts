import type { Clock } from "@idmint/core";
import {
  type EarlierLife,
  type EarlierRow,
  type GrantFile,
  idsLine,
  type KeptGrants,
  keptGrantsFrom,
  keptGrantsText,
  type KeptRow,
  type KeptTag,
  MAX_WATCHED,
  NO_EARLIER_LIFE,
  rowLine,
  storeLine,
  type StorePart,
  type VersionGuard,
} from "@idmint/core/server";

export interface GrantRecordPorts {
  /** Undefined: nothing is kept. */
  readonly file: GrantFile | undefined;
  readonly guard: VersionGuard;
  readonly clock: Clock;
  readonly wallClock: () => number;
  /** Id of the store that this server belongs to; undefined: it is not known yet. */
  readonly storeId: () => string | undefined;
}

/** Bytes of the file below which it is never written anew, and how much it grows beyond what it needs. */
const LEAST_BYTES = 1_000_000;
const GROWTH = 4;

/**
 * What this server was granted, over its lives on one run of the machine: the shell around core's kept-grants-state.ts.
 *
 * INVARIANT: of a file that is of another store nothing counts.
 */
export class GrantRecord {
  readonly #ports: GrantRecordPorts;
  readonly #rows = new Map<string, KeptRow>();
  readonly #sinceMs: number;
  readonly #isWhole: boolean;
  /** Of the row that this server goes on with; undefined: it is a new one. */
  readonly rowId: string | undefined;
  #incarnation = "";
  #neededBytes = 0;
  /** Databases in which this life of the server was renewed, and proved. */
  readonly #renewed = new Set<string>();
  /** Tags that were granted from since the last renewal was acknowledged, and between it and the one before. */
  #recent = new Set<string>();
  #before = new Set<string>();
  #earlierLife = NO_EARLIER_LIFE;

  /** `earlierId`: of the row that this server goes on with, as another file has it. */
  constructor(ports: GrantRecordPorts, earlierId: string | undefined) {
    const { file, guard, wallClock } = ports;
    this.#ports = ports;
    const found = foundBy(ports);
    const tags = [...(found?.tags.values() ?? [])];
    this.rowId = earlierId ?? found?.rows[0]?.id;
    this.#sinceMs = found?.sinceMs ?? wallClock();
    this.#isWhole = found?.isWhole ?? this.rowId === undefined;
    this.#incarnation = found?.incarnation ?? "";
    if (file === undefined) return;
    if (found !== undefined) this.#resume(found, file);
    // What was granted last is compared first.
    guard.resume(this.#incarnation, tags.toReversed(), {
      granted: (tag, ...granted) => {
        this.#recent.add(tag);
        file.append(idsLine(tag, ...granted));
      },
    });
    this.#replace(tags, found?.recent ?? 0);
  }

  #resume({ rows, recent, tags }: KeptGrants, { offsetMs }: GrantFile): void {
    const now = this.#ports.clock.now();
    for (const row of rows) {
      if (row.id !== this.rowId) continue;
      this.#rows.set(row.part, { ...row, atMs: Math.min(row.atMs - offsetMs, now) });
    }
    const renewedAt = new Map([...this.#rows.values()].map(({ part, atMs }) => [part, atMs]));
    this.#earlierLife = { renewedAt, isWhole: recent <= MAX_WATCHED };
    this.#before = new Set([...tags.keys()].slice(tags.size - recent));
  }

  /** Since when all grants are known, and whether nothing was granted under the row before. */
  get known(): { readonly sinceMs: number; readonly isWhole: boolean } {
    return { sinceMs: this.#sinceMs, isWhole: this.#isWhole };
  }

  get earlierLife(): EarlierLife {
    return this.#earlierLife;
  }

  /** What the store has to have of this server's row, where this life was not proved yet. */
  get earlierRows(): readonly EarlierRow[] {
    const now = this.#ports.clock.now();
    const left = [...this.#rows.values()].filter(({ part }) => !this.#renewed.has(part));
    return left.map(({ atMs, ...row }) => ({ ...row, agoMs: now - atMs }));
  }

  /** The store is in this history. */
  entered(incarnation: string): void {
    const { file, guard, storeId } = this.#ports;
    guard.entered(incarnation);
    if (incarnation === this.#incarnation) return;
    this.#incarnation = incarnation;
    file?.append(storeLine(storeId() ?? "", incarnation));
  }

  /** Renewals were acknowledged that were sent at `sentAt`; `isProved`: of which databases rows are written down. */
  renewed(
    parts: readonly StorePart[],
    id: string,
    sentAt: number,
    isProved: (part: string) => boolean,
  ): void {
    const { file, guard } = this.#ports;
    if (file === undefined) return;
    for (const { name: part, isRenewed, own } of parts) {
      if (!isRenewed || own === undefined || !isProved(part)) continue;
      this.#renewed.add(part);
      const row = { ...own, part, id, atMs: sentAt };
      this.#rows.set(part, row);
      file.append(rowLine({ ...row, atMs: sentAt + file.offsetMs }));
    }
    const isFresh = [...this.#rows.values()].every(({ atMs }) => atMs === sentAt);
    const isLarge = file.size > Math.max(LEAST_BYTES, GROWTH * this.#neededBytes);
    if (file.isEmpty || isLarge) this.#writeAnew([...guard.kept()], isFresh);
    if (!isFresh) return;
    this.#before = this.#recent;
    this.#recent = new Set();
  }

  /** Where a database was not heard of, it is not known which tags its row says nothing of: all of them count as such. */
  #writeAnew(all: readonly KeptTag[], isFresh: boolean): void {
    const isRecent = ({ tag }: KeptTag): boolean =>
      !isFresh || this.#recent.has(tag) || this.#before.has(tag);
    const last = all.filter(isRecent);
    this.#replace([...all.filter((tag) => !isRecent(tag)), ...last], last.length);
  }

  #replace(tags: readonly KeptTag[], recent: number): void {
    const { file, storeId } = this.#ports;
    if (file === undefined) return;
    const { offsetMs } = file;
    const rows = [...this.#rows.values()].map((row) => ({ ...row, atMs: row.atMs + offsetMs }));
    const store = { storeId: storeId() ?? "", incarnation: this.#incarnation };
    file.replace(keptGrantsText({ ...this.known, ...store, rows, tags, recent }));
    this.#neededBytes = file.size;
  }
}

/** Undefined: nothing that may be believed of this store. */
function foundBy({ file, storeId }: GrantRecordPorts): KeptGrants | undefined {
  const text = file?.found;
  const found = text === undefined ? undefined : keptGrantsFrom(text);
  const id = storeId();
  return id !== undefined && found?.storeId === id ? found : undefined;
}
