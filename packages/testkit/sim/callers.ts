import { countOf, type Segment } from "@idmint/core";
import {
  AllocateSegmentRequest,
  type AllocateSegmentResponse,
  GenerateIdsRequest,
  type GenerateIdsResponse,
  ReleaseSegmentRequest,
  ReleaseSegmentResponse,
} from "@idmint/proto";
import { segmentsOf } from "../../client/src/answers.ts";
import type { Fleet } from "./fleet.ts";
import { simKind } from "./kinds.ts";
import { DEADLINES_MS, gotOf, type Load } from "./load.ts";
import { Session } from "./nodes/session.ts";
import { callOnce, METHODS } from "./nodes/transport.ts";
import type { TagPlan } from "./plan.ts";
import type { Dice } from "./world/random.ts";
import type { World } from "./world/world.ts";

/** Most ids of one call, and requests of one session. */
const MOST_IDS = 30;
const MOST_REQUESTS = 10;
/** Mean time until a caller gives back what it does not need. */
const HELD_MS = 500;

/** A caller without an SDK: it asks any server, by any of the methods that give ids. */
export class PlainCaller {
  readonly #fleet: Fleet;
  readonly #load: Load;
  readonly #world: World;
  readonly #dice: Dice;
  /** Highest id that it had of a tag. */
  readonly #highest = new Map<string, bigint>();

  constructor(fleet: Fleet, load: Load, world: World, dice: Dice) {
    this.#fleet = fleet;
    this.#load = load;
    this.#world = world;
    this.#dice = dice;
  }

  /** A call, or a session of several. Never rejects. */
  async ask(): Promise<void> {
    const { plan, addresses } = this.#fleet;
    const dice = this.#dice;
    const to = dice.pick(addresses);
    const tag = dice.pick(plan.tags);
    const way = dice.next();
    if (way < 0.1) return this.#session(to);
    if (way < 0.25) return this.#several(to, tag);
    if (way < 0.4 && tag.kind === "segment") return this.#allocate(to, tag);
    await this.#load.askServer(this.#world, to, tag, dice.pick(DEADLINES_MS));
  }

  async #several(to: string, tag: TagPlan): Promise<void> {
    const { name } = tag;
    const dice = this.#dice;
    const timeoutMs = dice.pick(DEADLINES_MS);
    // Ids that are written are none of a block.
    const asList = dice.chance(0.3) || isWritten(tag);
    const request = { tag: name, count: dice.int(1, MOST_IDS), asList };
    const asker = { name: this.#world.name, isSdk: false };
    await this.#load.call(this.#world, asker, name, timeoutMs, async () => {
      const message = GenerateIdsRequest.fromPartial(request);
      const answer = await callOnce(this.#caller, to, METHODS.generate, message, timeoutMs);
      return this.#got(answer, to, name, request.count);
    });
  }

  /** A block that it uses itself, and perhaps gives the end of back. */
  async #allocate(to: string, { name, order }: TagPlan): Promise<void> {
    const dice = this.#dice;
    const timeoutMs = dice.pick(DEADLINES_MS);
    const count = dice.int(1, MOST_IDS);
    const isOrdered = order === "PER_CLIENT";
    const after = isOrdered ? (this.#highest.get(name) ?? 0n) : 0n;
    const instance = `${this.#world.name}-a`;
    const asker = { name: instance, isSdk: isOrdered };
    let release: (() => Promise<void>) | undefined;
    await this.#load.call(this.#world, asker, name, timeoutMs, async () => {
      const request = AllocateSegmentRequest.fromPartial({ tag: name, count, after, instance });
      const answer = await callOnce(this.#caller, to, METHODS.allocate, request, timeoutMs);
      const all = segmentsOf(answer.segments, { tag: name, server: to });
      const has = countOf(all);
      if (has > count) this.#fleet.checker.violate(`${name}: ${has} ids, not ${count}`);
      const used = dice.int(1, has);
      const last = all.at(-1);
      if (last !== undefined) this.#highest.set(name, last.base + BigInt(last.count) - 1n);
      if (used < has && answer.releaseToken !== "")
        release = () => this.#release(to, name, answer, has - used);
      return { segments: firstOf(all, used), period: "" };
    });
    await release?.();
  }

  /** Gives back what it did not use; a second time it is refused. */
  async #release(
    to: string,
    tag: string,
    { releaseToken }: AllocateSegmentResponse,
    unusedCount: number,
  ): Promise<void> {
    const dice = this.#dice;
    await this.#world.pause(dice.about(HELD_MS));
    const request = ReleaseSegmentRequest.fromPartial({ tag, releaseToken, unusedCount });
    let isDone = false;
    for (let tries = dice.int(1, 2); tries > 0; tries--) {
      try {
        const answer = await callOnce(this.#caller, to, METHODS.release, request, 2_000);
        const { reclaimedCount: back } = ReleaseSegmentResponse.fromPartial(answer);
        if ((back !== 0 && back !== unusedCount) || (isDone && back > 0))
          this.#fleet.checker.violate(`${tag}: ${back} of ${unusedCount} ids were taken back`);
        isDone = true;
      } catch {
        // Nobody knows whether they were taken back: they are used by nobody here.
      }
    }
  }

  /** A few requests on a stream, some of them at once. */
  async #session(to: string): Promise<void> {
    const dice = this.#dice;
    const session = new Session(this.#fleet, this.#world, to, this.#caller.authorization);
    for (let left = dice.int(2, MOST_REQUESTS); left > 0 && !session.isOver; left--) {
      const atOnce = dice.chance(0.3) ? dice.int(2, 5) : 1;
      const tag = dice.pick(this.#fleet.plan.tags);
      await Promise.all(Array.from({ length: atOnce }, () => this.#request(session, to, tag)));
      await this.#world.pause(dice.about(this.#fleet.plan.everyMs / 4));
    }
    session.end();
  }

  #request(session: Session, to: string, tag: TagPlan): Promise<boolean> {
    const dice = this.#dice;
    const timeoutMs = dice.pick(DEADLINES_MS);
    const { name, kind } = tag;
    const count = dice.chance(0.7) || kind === "coupons" ? dice.int(0, 1) : dice.int(2, MOST_IDS);
    const isTagLeft = dice.chance(0.5);
    const asker = { name: this.#world.name, isSdk: false };
    return this.#load.call(this.#world, asker, name, timeoutMs, async () => {
      const answer = await session.ask(name, count, timeoutMs, isTagLeft);
      return this.#got(answer, to, name, Math.max(1, count));
    });
  }

  /** What an answer holds, which has to be as much as was asked for. */
  #got(answer: GenerateIdsResponse, to: string, tag: string, count: number) {
    const got = gotOf(answer, tag, to);
    const has = (got.texts ?? []).length || countOf(got.segments);
    if (has !== count) this.#fleet.checker.violate(`${tag}: ${has} ids, not ${count}`);
    return got;
  }

  get #caller() {
    return this.#fleet.caller(this.#world);
  }
}

function isWritten(tag: TagPlan): boolean {
  return simKind(tag).isText || tag.kind === "coupons";
}

/** The first ids of a block. */
function firstOf(all: readonly Segment[], count: number): readonly Segment[] {
  const first: Segment[] = [];
  let left = count;
  for (const segment of all) {
    if (left === 0) break;
    const part = { ...segment, count: Math.min(left, segment.count) };
    first.push(part);
    left -= part.count;
  }
  return first;
}
