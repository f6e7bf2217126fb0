import {
  type ChangeOptions,
  type IssuingStore,
  memoryMsOf,
  type PartIssuing,
  stoppedSince,
  type Tag,
  type TagStore,
} from "@idmint/core/server";
import type { AdminGate } from "../admin-gate.ts";
import type { Poll } from "../upstream/poll.ts";
import { NO_EFFECT, type TagEffect, type TagEffects } from "./effects.ts";

/** Tags of one page, and most pages: with more of them it is not known how long their callers hold ids. */
const PAGE = 1_000;
const MAX_PAGES = 10_000;

/** Whether servers issue, and by when nobody issues any more if not. */
export interface IssuingStatus {
  /** By the store's clock, milliseconds since 1970; undefined: they issue. */
  readonly stoppedAtMs: number | undefined;
  readonly effect: TagEffect;
}

interface IssuingPorts {
  readonly store: IssuingStore & Pick<TagStore, "listTags">;
  readonly gate: AdminGate;
  readonly poll: Pick<Poll, "refresh" | "issuing">;
  readonly effects: Pick<TagEffects, "ofStop" | "isEarlierOver">;
  /** Tells other servers that something was changed; returns at once, and never fails. */
  readonly announce: () => void;
}

/** How long callers hold ids of some tag, as it was after a stop. */
interface LongestMemory {
  readonly stop: string;
  readonly memoryMs: number | undefined;
}

/** Stops all servers on the store, and lets them go on. This one has obeyed when the call is answered. */
export class IssuingService {
  readonly #ports: IssuingPorts;
  #longest: LongestMemory | undefined;

  constructor(ports: IssuingPorts) {
    this.#ports = ports;
  }

  async stop(options: ChangeOptions): Promise<IssuingStatus> {
    return this.#statusOf(await this.#set(true, options), options);
  }

  async resume(options: ChangeOptions): Promise<void> {
    await this.#set(false, options);
  }

  /** Out of this server's memory, but for the settings of tags. */
  async get(): Promise<IssuingStatus> {
    return this.#statusOf(this.#ports.poll.issuing, {});
  }

  async #set(isStopped: boolean, options: ChangeOptions): Promise<readonly PartIssuing[]> {
    const { store, gate, poll, announce } = this.#ports;
    const parts = await gate.run(() => store.setIssuing(isStopped, options));
    if (options.validateOnly === true) return parts;
    announce();
    await poll.refresh();
    return parts;
  }

  async #statusOf(
    parts: readonly PartIssuing[],
    { validateOnly = false }: ChangeOptions,
  ): Promise<IssuingStatus> {
    const stoppedAtMs = stoppedSince(parts);
    if (stoppedAtMs === undefined || validateOnly) return { stoppedAtMs, effect: NO_EFFECT };
    const memoryMs = await this.#longestMemoryMs(parts);
    if (memoryMs === undefined) return { stoppedAtMs, effect: NO_EFFECT };
    return { stoppedAtMs, effect: await this.#ports.effects.ofStop(parts, memoryMs) };
  }

  /**
   * The longest time for which callers may hold ids of any tag, deleted ones included. It is looked for once after each
   * stop: nobody is given ids after it, so what is changed later makes no difference. Not known: undefined.
   */
  async #longestMemoryMs(parts: readonly PartIssuing[]): Promise<number | undefined> {
    const stop = parts.map(({ name, revision }) => `${name}=${revision}`).join(",");
    if (this.#longest?.stop === stop) return this.#longest.memoryMs;
    const { store, gate } = this.#ports;
    let most = 0;
    let afterName = "";
    for (let page = 0; page < MAX_PAGES; page++) {
      const query = { afterName, prefix: "", showDeleted: true, limit: PAGE };
      // A page begins where the one before ended.
      const { tags, unreadable } = await gate.run(() => store.listTags(query));
      // Nobody knows for how long its ids may be held.
      if (unreadable.length > 0) return undefined;
      for (const tag of tags) most = Math.max(most, this.#memoryMsOf(tag));
      afterName = tags.at(-1)?.name ?? "";
      if (tags.length < PAGE) {
        this.#longest = { stop, memoryMs: most };
        return most;
      }
    }
    return undefined;
  }

  #memoryMsOf(tag: Tag): number {
    const earlierMs = this.#ports.effects.isEarlierOver(tag) ? 0 : (tag.earlier?.memoryMs ?? 0);
    return Math.max(memoryMsOf(tag.kind), earlierMs);
  }
}
