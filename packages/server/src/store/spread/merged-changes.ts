import { bounded, MAX_ID } from "@idmint/core";
import { type ChangeStore, type StoreChanges, storeUnavailable } from "@idmint/core/server";
import { nodeTimers } from "../../timers.ts";
import type { DatabaseChanges } from "../postgres/changes.ts";
import type { Locator } from "./locator.ts";

/** How long a poll waits for a database; one that takes longer has its say in the next poll. */
const PATIENCE_MS = 500;
/** Polls whose place is remembered. A poll from before all of them begins anew, and answers more than changed. */
const MAX_MARKS = 1_000;
/** Histories of one database that are remembered as left. */
const MAX_LEFT = 1_000;

/** How far each database was polled, by name. */
type Marks = ReadonlyMap<string, bigint>;

/** What is known of the history of one database. */
interface History {
  present: string;
  readonly left: Set<string>;
  revision: bigint;
  wentBack: string;
}

type Query = Parameters<ChangeStore["changes"]>[0];
type Ask = (member: string, query: Query) => Promise<DatabaseChanges>;
type Renewal = Query["renewal"];

/**
 * Polls several databases as if they were one.
 *
 * INVARIANTS
 * - A revision answered here stands for one place in each database: it is their sum, and places only go forward within
 *   the histories that one incarnation stands for. A database that does not answer stays where it was and misses nothing.
 * - A database whose revision goes down, or whose history is one that was left, went back: that fences all tags until
 *   that database begins a history that was not seen before, which begins a new one here.
 */
export class MergedChanges {
  readonly #members: readonly string[];
  readonly #locator: Locator;
  readonly #ask: Ask;
  readonly #marks = new Map<bigint, Marks>();
  readonly #histories = new Map<string, History>();
  readonly #busy = new Set<string>();
  #incarnation = "";
  /** Whether a promoted standby was accepted since the last answer here; that may take longer than a poll waits. */
  #isAccepted = false;

  constructor(members: readonly string[], locator: Locator, ask: Ask) {
    this.#members = members;
    this.#locator = locator;
    this.#ask = ask;
  }

  async changes({ since, watched, limit, renewal, nodes }: Query): Promise<StoreChanges> {
    const from = this.#marksAt(since);
    const places = Map.groupBy(watched, ({ tag }) => this.#locator.placeOf(tag));
    const asked = this.#members.map(async (member) => {
      const query = {
        since: from.get(member) ?? 0n,
        watched: places.get(member) ?? [],
        limit,
        renewal: this.#renewalIn(member, renewal),
        nodes: nodes === true,
      };
      return { member, answer: await this.#bounded(member, query) };
    });
    const settled = await Promise.allSettled(asked);
    const answers = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const [first] = answers;
    if (first === undefined) {
      const failure = settled.find((one) => one.status === "rejected");
      throw failure?.reason instanceof Error ? failure.reason : storeUnavailable("no database");
    }
    const fences = answers.flatMap(({ member, answer }) => this.#judge(member, answer));
    for (const { member, answer } of answers) this.#noteDeparted(member, answer, limit);
    // A database that is away has not been polled at all where the poll begins at the end.
    const marks = new Map(this.#members.map((name) => [name, startOf(from.get(name))]));
    const page = { changed: [] as StoreChanges["changed"][number][], more: false };
    for (const { member, answer } of answers) {
      const room = limit - page.changed.length;
      const taken = answer.changed.slice(0, room);
      const isWhole = taken.length === answer.changed.length;
      if (!isWhole || answer.more) page.more = true;
      const left = taken.at(-1)?.revision ?? marks.get(member) ?? 0n;
      marks.set(member, isWhole ? (answer.next ?? answer.revision) : left);
      page.changed.push(...taken);
    }
    const next = this.#remember(marks);
    const isAccepted = this.#isAccepted;
    this.#isAccepted = false;
    return {
      ...page,
      incarnation: this.#incarnation,
      revision: next,
      next,
      unreadable: answers.flatMap(({ answer }) => answer.unreadable ?? []),
      behind: answers.flatMap(({ answer }) => answer.behind),
      changedByHand: answers.flatMap(({ answer }) => answer.changedByHand ?? []),
      fenced: fences.join("; "),
      warning: answers
        .flatMap(({ member, answer: { warning = "" } }) =>
          warning === "" ? [] : [`database ${member}: ${warning}`],
        )
        .join("; "),
      nowMs: first.answer.nowMs,
      isAccepted,
      parts: answers.flatMap(({ member, answer }) =>
        answer.parts.map((part) => ({ ...part, name: member })),
      ),
    };
  }

  /** How far a database was obeyed is what the answer of that revision said of it; of older answers nothing is known. */
  #renewalIn(member: string, ofAll: Renewal): Renewal {
    if (ofAll === undefined) return undefined;
    const earlier = ofAll.earlier?.filter(({ part }) => part === member);
    const renewal = { ...ofAll, earlier };
    const isOfNow = renewal.incarnation !== "" && renewal.incarnation === this.#incarnation;
    const mark = isOfNow ? this.#marks.get(renewal.obeyed)?.get(member) : undefined;
    const incarnation = this.#histories.get(member)?.present;
    if (mark === undefined || incarnation === undefined) {
      return { ...renewal, incarnation: "", obeyed: 0n };
    }
    return { ...renewal, incarnation, obeyed: mark };
  }

  #noteDeparted(member: string, { departed }: DatabaseChanges, limit: number): void {
    if (departed.length > limit) this.#locator.losePlaces();
    else for (const { tag, to } of departed) this.#locator.noteLeft(tag, to ?? member);
  }

  #marksAt(since: bigint): Marks {
    if (since === MAX_ID) return new Map(this.#members.map((name) => [name, MAX_ID]));
    return this.#marks.get(since) ?? new Map();
  }

  #remember(marks: Marks): bigint {
    let sum = 0n;
    for (const revision of marks.values()) sum += revision;
    this.#marks.delete(sum);
    this.#marks.set(sum, marks);
    const [oldest] = this.#marks.keys();
    if (this.#marks.size > MAX_MARKS && oldest !== undefined) this.#marks.delete(oldest);
    return sum;
  }

  /** One poll of a database at a time. An answer that comes late is not used. */
  async #bounded(member: string, query: Query): Promise<DatabaseChanges> {
    if (this.#busy.has(member)) throw storeUnavailable(`database ${member} does not answer`);
    this.#busy.add(member);
    const answer = this.#ask(member, query)
      .then((found) => {
        if (found.isAccepted === true) this.#isAccepted = true;
        return found;
      })
      .finally(() => this.#busy.delete(member));
    return bounded(answer, PATIENCE_MS, nodeTimers, () => {
      throw storeUnavailable(`database ${member} did not answer in time`);
    });
  }

  /** What speaks against granting, in words. */
  #judge(member: string, { incarnation, revision, fenced }: StoreChanges): readonly string[] {
    const known = this.#histories.get(member);
    const history = known ?? { present: incarnation, left: new Set(), revision, wentBack: "" };
    this.#histories.set(member, history);
    if (incarnation !== history.present) {
      if (history.left.has(incarnation)) history.wentBack = "is as it was before it was accepted";
      else this.#begin(history, incarnation, revision);
    } else if (revision < history.revision) {
      history.wentBack = `has revision ${revision}, and ${history.revision} was seen before`;
    } else {
      history.revision = revision;
    }
    if (this.#incarnation === "") this.#incarnation = this.#name();
    const why = history.wentBack === "" ? fenced : history.wentBack;
    return why === "" ? [] : [`database ${member}: ${why}`];
  }

  #begin(history: History, incarnation: string, revision: bigint): void {
    history.left.add(history.present);
    const [oldest] = history.left;
    if (history.left.size > MAX_LEFT && oldest !== undefined) history.left.delete(oldest);
    history.present = incarnation;
    history.revision = revision;
    history.wentBack = "";
    this.#marks.clear();
    this.#incarnation = this.#name();
  }

  #name(): string {
    return [...this.#histories].map(([member, { present }]) => `${member}=${present}`).join(",");
  }
}

function startOf(mark: bigint | undefined): bigint {
  return mark === undefined || mark === MAX_ID ? 0n : mark;
}
