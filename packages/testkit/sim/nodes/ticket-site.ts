import { nameOfId, type SlotGrant, type TicketDatabase } from "@idmint/core/server";
import { MemoryTicketDatabase } from "../../src/index.ts";
import type { Checker } from "../check/checker.ts";
import type { EventQueue } from "../world/queue.ts";
import { Dice } from "../world/random.ts";
import type { Trace } from "../world/trace.ts";

/** How often a state is kept that a database may be set back to, and how many. */
const BACKUP_MS = 2_300;
const MOST_BACKUPS = 6;

/** What is wrong with a ticket database for a while. */
export interface TicketTrouble {
  /** It takes requests and does nothing. */
  readonly hangs?: boolean;
  /** Mean of the time that each request waits before it is done. */
  readonly slowMs?: number;
  /** Share of answers that get lost when all is done. */
  readonly lostAnswers?: number;
}

/** A ticket database of a history, where it stands. */
export class TicketSite {
  readonly place: string;
  readonly memory: MemoryTicketDatabase;
  readonly #queue: EventQueue;
  readonly #trace: Trace;
  readonly #checker: Checker;
  readonly #dice: Dice;
  readonly #troubles = new Set<TicketTrouble>();
  readonly #backups: ReturnType<MemoryTicketDatabase["backup"]>[] = [];
  #downs = 0;
  #isBack = false;

  constructor(
    seed: string,
    name: string,
    { queue, trace, checker }: { queue: EventQueue; trace: Trace; checker: Checker },
  ) {
    this.place = `tickets-${name}`;
    this.memory = new MemoryTicketDatabase(name);
    this.#dice = new Dice(`${seed}/${this.place} troubles`);
    this.#queue = queue;
    this.#trace = trace;
    this.#checker = checker;
    this.#keepBackups();
  }

  disturb(trouble: TicketTrouble): () => void {
    this.#troubles.add(trouble);
    return () => void this.#troubles.delete(trouble);
  }

  /** Its process ends; the answer starts it again. */
  stop(): () => void {
    this.#downs++;
    this.memory.stop();
    return () => {
      this.#downs--;
      if (this.#downs === 0) this.memory.start();
    };
  }

  /** An older copy takes its place, and is known to be one; the answer brings back what it was. */
  goBack(): (() => void) | undefined {
    const [older] = this.#backups;
    if (older === undefined || this.#isBack) return undefined;
    const present = this.memory.backup();
    this.#isBack = true;
    older(true);
    return () => {
      present(false);
      this.#isBack = false;
    };
  }

  /** How a request fares that arrives now. */
  fate(): { readonly delayMs: number; readonly is: "done" | "lost" | "unheard" } {
    let delayMs = 0;
    let is: "done" | "lost" | "unheard" = "done";
    for (const { hangs, slowMs, lostAnswers = 0 } of this.#troubles) {
      if (slowMs !== undefined) delayMs += this.#dice.about(slowMs);
      if (hangs === true) is = "lost";
      else if (this.#dice.chance(lostAnswers)) is = "unheard";
    }
    return { delayMs, is };
  }

  /** What a node asks of it, as soon as that arrived. */
  calls(who: string): TicketDatabase {
    const { memory } = this;
    return {
      name: memory.name,
      list: (slotsId) => memory.list(slotsId),
      listSlotsIds: (query) => memory.listSlotsIds(query),
      make: (request) => memory.make(request),
      raise: (request) => memory.raise(request),
      freeze: (request) => memory.freeze(request),
      adopt: (request) => memory.adopt(request),
      forget: (request) => memory.forget(request),
      confirm: (request) => memory.confirm(request),
      grant: async (request) => {
        const grants = await memory.grant(request);
        for (const grant of grants) this.#note(who, request.slotsId, grant);
        return grants;
      },
    };
  }

  #note(who: string, slotsId: string, grant: SlotGrant): void {
    const { slot, outcome } = grant;
    const tag = nameOfId(slotsId);
    if (outcome === "refused") {
      this.#trace.note(this.place, `${tag} slot ${slot} for ${who}: ${grant.reason}`);
      return;
    }
    const { first, lastId: last } = grant;
    this.#trace.note(this.place, `${tag} slot ${slot} for ${who}: ${first} … ${last}`);
    this.#checker.ticketsGranted({ tag, first, last });
  }

  #keepBackups(): void {
    if (!this.#isBack) this.#backups.push(this.memory.backup());
    if (this.#backups.length > MOST_BACKUPS) this.#backups.shift();
    this.#queue.after(BACKUP_MS, () => this.#keepBackups());
  }
}
