import { IdmintError, MAX_ID, type Timers } from "@idmint/core";
import type { AuditNote, GrantedIds, Tag, TagStore, VersionGuard } from "@idmint/core/server";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";

export interface LateClaimsPorts {
  readonly store: Pick<TagStore, "advanceTag" | "getTags">;
  readonly guard: Pick<VersionGuard, "grantedTags" | "highest" | "observeFloor">;
  readonly timers: Timers;
  readonly storeTimeoutMs: number;
  readonly note: () => AuditNote;
  readonly emit: Emit;
}

/** Tags that wait to be raised; of further ones the next grant shows the same. */
const MAX_WAITING = 100_000;
/** Tags whose floors are read at once. */
const PAGE = 1_000;

/** What one tag waits for. */
interface Claim {
  readonly last: bigint;
  /** The floor that was found. */
  readonly floor: bigint;
}

/**
 * Raises floors that an accept left below what this server was granted before: another server would be granted the same ids.
 * The raise takes a new epoch, so that servers drop what they hold of the tag.
 *
 * INVARIANT: a floor is compared with ids of its own period, and only across epochs. Within an epoch the record may be older
 * than the grant, or the store went back, which the version guard says.
 */
export class LateClaims {
  readonly #ports: LateClaimsPorts;
  readonly #waiting = new Map<string, Claim>();
  /** Tags whose raise failed last, which is told once. */
  readonly #failing = new Set<string>();
  #isRunning = false;
  #history = 0;

  constructor(ports: LateClaimsPorts) {
    this.#ports = ports;
  }

  /** Another history of the store began: its floors are compared, also of tags that nobody asks for. */
  startHistory(): void {
    void this.#look(++this.#history);
  }

  async #look(history: number): Promise<void> {
    const { store, guard, timers, storeTimeoutMs } = this.#ports;
    const names = guard.grantedTags();
    try {
      for (let at = 0; at < names.length && history === this.#history; at += PAGE) {
        const page = names.slice(at, at + PAGE);
        this.#check(await within(() => store.getTags(page), storeTimeoutMs, timers));
      }
    } catch {
      // The next grant of each tag shows the same.
    }
  }

  #check(tags: readonly Tag[]): void {
    for (const tag of tags) {
      // Whoever is granted what comes next may be gone when the store goes back to before this accept.
      this.#ports.guard.observeFloor(tag);
      const { name, floor, epoch, periodStart } = tag;
      const highest = this.#ports.guard.highest(name, periodStart);
      if (highest === undefined || epoch <= highest.epoch || floor >= highest.last) continue;
      this.#want(name, { last: highest.last, floor });
    }
  }

  /** A grant of the present history has ids that this server was granted before. */
  below(tag: string, { first, period }: GrantedIds): void {
    const highest = this.#ports.guard.highest(tag, period);
    if (highest !== undefined) this.#want(tag, { last: highest.last, floor: first - 1n });
  }

  #want(tag: string, claim: Claim): void {
    if (this.#waiting.size >= MAX_WAITING) return;
    this.#waiting.set(tag, claim);
    if (!this.#isRunning) void this.#run();
  }

  /** One after the other: the store is busy enough after an accept. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    for (const [tag, claim] of this.#waiting) {
      // What shows while it is raised is looked at once more.
      this.#waiting.delete(tag);
      await this.#raise(tag, claim);
    }
    this.#isRunning = false;
  }

  async #raise(tag: string, { last, floor }: Claim): Promise<void> {
    const { store, timers, storeTimeoutMs, note, emit } = this.#ports;
    const options = { maxRaise: MAX_ID, expectedRevision: undefined, by: note() };
    try {
      const work = () => store.advanceTag(tag, last, options);
      const { raised } = await within(work, storeTimeoutMs, timers);
      this.#failing.delete(tag);
      // Somebody who knew more may have raised it before.
      if (raised) emit({ type: "late-claim", tag, missing: last - floor });
    } catch (thrown) {
      // The next grant of the tag shows the same.
      if (this.#failing.has(tag) || this.#failing.size >= MAX_WAITING) return;
      this.#failing.add(tag);
      emit({ type: "late-claim-failed", tag, error: IdmintError.from(thrown) });
    }
  }
}
