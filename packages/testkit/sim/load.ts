import { countOf, IdmintError, idsOf, type Segment, segmentOf } from "@idmint/core";
import { GenerateIdRequest, GenerateIdResponse, type GenerateIdsResponse } from "@idmint/proto";
import { segmentsOf } from "../../client/src/answers.ts";
import type { IdTag } from "../../client/src/api.ts";
import { type Asker, type Got, isUnheardOf } from "./check/checker.ts";
import type { Fleet } from "./fleet.ts";
import { simKind } from "./kinds.ts";
import type { TagPlan } from "./plan.ts";
import { Dice } from "./world/random.ts";
import type { SimSdk } from "./nodes/sdk.ts";
import { callOnce, type Method } from "./nodes/transport.ts";
import type { World } from "./world/world.ts";

export const DEADLINES_MS = [300, 2_000, 6_000] as const;
/** Most ids of one call. */
const MOST_TAKEN = 100;
/** Where servers are open to all, and to whoever may have all, nobody is refused with these. */
const DENIALS: ReadonlySet<string> = new Set(["PERMISSION_DENIED", "UNAUTHENTICATED"]);
/** When everybody is asked, after a change is in effect. */
const PRESSED_MS = [1, 60, 250, 700, 1_500] as const;
const PRESSED_DEADLINE_MS = 300;
/** For so long programs ask for nothing, if the change does not come. */
const HUSHED_MS = 25_000;
/** For so long what a burst left may be issued without a look at the clock: until a timer of 1 ms has run, late as timers are here. */
const BURST_MS = 3;
/** How much later than its deadline a call may end, when its process was not stopped meanwhile. */
const LATE_MS = 250;

export const GENERATE_ID: Method<GenerateIdRequest, GenerateIdResponse> = {
  path: "/idmint.v1.IdService/GenerateId",
  request: GenerateIdRequest,
  response: GenerateIdResponse,
};

/** What programs ask for: the loops of all SDKs, and of callers without one. */
export class Load {
  /** Calls that have not ended, by who made them. */
  readonly open = new Map<World, number>();
  readonly refusals = new Map<string, number>();
  readonly #fleet: Fleet;
  /** Tags that programs do not ask for, and until when. */
  readonly #hushed = new Map<string, number>();
  readonly #watcher: World | undefined;
  /** When somebody got ids of a tag last, and when several times in a row. */
  readonly #gotAt = new Map<string, number>();
  readonly #burstAt = new Map<string, number>();
  /** Each ends the wait for the next call of a loop. */
  readonly #waits = new Set<() => void>();
  #isOver = false;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    const isLed = fleet.plan.actions.some(({ lead }) => lead !== undefined);
    this.#watcher = isLed ? fleet.world("watcher") : undefined;
  }

  stop(): void {
    this.#isOver = true;
    for (const end of this.#waits) end();
  }

  /** A program begins: it uses each tag in a loop of its own. */
  ofSdk(sdk: SimSdk): void {
    const { plan } = this.#fleet;
    for (const tag of plan.tags) {
      const dice = new Dice(`${plan.seed}/${sdk.world.name}/${tag.name}`);
      this.#loop(sdk.world, dice, () => {
        const isHushed = this.#fleet.queue.now < (this.#hushed.get(tag.name) ?? 0);
        return isHushed ? Promise.resolve() : this.askSdk(sdk, tag, dice);
      });
    }
  }

  /** Programs ask for this tag no more until a change of it is in effect. */
  hush(name: string): void {
    this.#hushed.set(name, this.#fleet.queue.now + HUSHED_MS);
  }

  /** From the moment on at which a change is in effect everybody is asked for these tags, at once and again. */
  press(names: readonly string[], atMs: number): void {
    const { queue } = this.#fleet;
    const watcher = this.#watcher;
    if (watcher === undefined) return;
    for (const ms of PRESSED_MS)
      queue.after(Math.max(0, atMs - queue.now) + ms, () => this.#pressOnce(names, watcher));
  }

  #pressOnce(names: readonly string[], watcher: World): void {
    if (this.#isOver) return;
    const { plan, sdks, addresses } = this.#fleet;
    for (const tag of plan.tags) {
      if (!names.includes(tag.name)) continue;
      this.#hushed.delete(tag.name);
      for (const to of addresses) void this.askServer(watcher, to, tag, PRESSED_DEADLINE_MS);
      for (const sdk of sdks) {
        if (sdk.isClosing || sdk.world.isStopped) continue;
        const asker = { name: sdk.world.name, isSdk: true };
        const ask =
          tag.kind === "segment" ? nowOf : (its: IdTag, ms: number) => oneOf(tag, its, ms);
        const its = sdk.tag(tag.name);
        void this.call(sdk.world, asker, tag.name, PRESSED_DEADLINE_MS, () =>
          ask(its, PRESSED_DEADLINE_MS),
        );
      }
    }
  }

  /** Somebody asks again and again, until the load is over. */
  ofCaller(world: World, dice: Dice, ask: () => Promise<unknown>, everyMs?: number): void {
    this.#loop(world, dice, ask, everyMs);
  }

  /** One call of a program, or a few at once. Never rejects. Answers whether all got ids; also when it ends meanwhile. */
  async askSdk(
    sdk: SimSdk,
    plan: TagPlan,
    dice: Dice,
    deadlineMs: number = dice.pick(DEADLINES_MS),
  ): Promise<boolean> {
    if (sdk.isClosing) return true;
    const asker = { name: sdk.world.name, isSdk: true };
    const tag = sdk.tag(plan.name);
    const one = (): Promise<boolean> =>
      this.call(sdk.world, asker, plan.name, deadlineMs, () => oneOf(plan, tag, deadlineMs));
    if (dice.chance(0.15)) {
      const all = await Promise.all(Array.from({ length: dice.int(2, 8) }, one));
      return all.every(Boolean);
    }
    // What is taken of a sequence could be used out of order, so the SDK takes nothing of it.
    if (plan.kind === "segment" && dice.chance(0.2)) {
      return this.call(sdk.world, asker, plan.name, deadlineMs, () => nowOf(tag, deadlineMs));
    }
    if (plan.kind !== "segment" || dice.chance(0.6)) return one();
    const count = dice.int(1, Math.min(MOST_TAKEN, 3 * plan.min));
    return this.call(sdk.world, asker, plan.name, deadlineMs, async () => {
      const segments = await tag.take(count, { deadlineMs });
      const has = countOf(segments);
      if (has !== count) this.#fleet.checker.violate(`${plan.name}: ${has} ids, not ${count}`);
      return { segments, period: "" };
    });
  }

  /** One call of one server. Never rejects. */
  askServer(world: World, to: string, { name }: TagPlan, deadlineMs: number): Promise<boolean> {
    const asker = { name: world.name, isSdk: false };
    const caller = this.#fleet.caller(world);
    return this.call(world, asker, name, deadlineMs, async () => {
      const request = { tag: name, name: "" };
      return gotOfOne(await callOnce(caller, to, GENERATE_ID, request, deadlineMs));
    });
  }

  /** The numbers that were granted, where they can be told from what a caller got. */
  #read(name: string, got: Got): Got {
    const plan = this.#fleet.plan.tags.find((tag) => tag.name === name);
    if (plan === undefined) return got;
    const { numberOf, isId, isText } = simKind(plan);
    const { checker } = this.#fleet;
    const { segments, texts = [], period } = got;
    const hasNumbers = segments.length > 0;
    if (isText === hasNumbers) checker.violate(`${name}: ${texts.length} ids are text`);
    if (numberOf === undefined) {
      const wrong = texts.find((text) => isId?.(plan, text) !== true);
      if (wrong !== undefined) checker.violate(`${name}: "${wrong}" is no id of it`);
      return got;
    }
    const ids = isText ? texts : [...idsOf(segments)].map(String);
    const numbers = ids.flatMap((id) => {
      const number = numberOf(plan, id);
      if (number === undefined) checker.violate(`${name}: "${id}" is no id of it`);
      return number === undefined ? [] : [segmentOf(number, 1)];
    });
    return { segments: numbers, period };
  }

  #loop(
    world: World,
    dice: Dice,
    ask: () => Promise<unknown>,
    everyMs: number = this.#fleet.plan.everyMs,
  ): void {
    if (this.#isOver) return;
    const end = world.after(dice.about(everyMs), () => {
      this.#waits.delete(end);
      void ask().then(() => this.#loop(world, dice, ask, everyMs));
    });
    this.#waits.add(end);
  }

  /** Makes a call and holds what it gets against what was promised. Never rejects. */
  async call(
    world: World,
    asker: Asker,
    tag: string,
    deadlineMs: number,
    ask: () => Promise<Got>,
  ): Promise<boolean> {
    const { badges, checker, meetings, trace } = this.#fleet;
    const key = `${asker.name} ${tag}`;
    const now = this.#fleet.queue.now;
    const isInBurst = world.isWoken || now - (this.#burstAt.get(key) ?? -Infinity) < BURST_MS;
    const begun = checker.begin({ ...asker, isInBurst }, tag);
    meetings.called(tag);
    const startedAt = world.now();
    const { stops } = world;
    this.open.set(world, (this.open.get(world) ?? 0) + 1);
    try {
      const got = await ask();
      // Nobody has what a process got that is dead.
      if (world.isDead) return false;
      checker.got(begun, this.#read(tag, got));
      if (this.#fleet.queue.now - (this.#gotAt.get(key) ?? -Infinity) < 2)
        this.#burstAt.set(key, this.#fleet.queue.now);
      this.#gotAt.set(key, this.#fleet.queue.now);
      return true;
    } catch (thrown) {
      if (world.isDead) return false;
      const reason = thrown instanceof IdmintError ? thrown.reason : String(thrown);
      trace.note(asker.name, `is refused ${tag}: ${reason}`);
      this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1);
      checker.refused(begun, reason);
      if (DENIALS.has(reason) && badges.isAlwaysGood(world))
        checker.violate(`${tag}: ${asker.name} may have all, and was refused with ${reason}`);
      return false;
    } finally {
      this.open.set(world, (this.open.get(world) ?? 1) - 1);
      const tookMs = world.now() - startedAt;
      if (tookMs > deadlineMs + LATE_MS && world.stops === stops && !world.isDead) {
        checker.violate(
          `${asker.name} waited ${tookMs.toFixed(0)} ms for ${tag}, not ${deadlineMs}`,
        );
      }
    }
  }
}

/** What an answer of GenerateId holds. */
export function gotOfOne({ id, text, period }: GenerateIdResponse): Got {
  return period === "" && text !== ""
    ? { segments: [], texts: [text], period }
    : { segments: [segmentOf(id, 1)], period };
}

/** What an answer of GenerateIds holds. Ids of periods come as text besides. */
export function gotOf(answer: GenerateIdsResponse, tag: string, server = ""): Got {
  const texts = answer.period === "" ? answer.texts : [];
  const segments = [
    ...segmentsOf(answer.segments, { tag, server }),
    ...answer.ids.map((id) => segmentOf(id, 1)),
  ];
  return { segments: texts.length > 0 ? [] : segments, texts, period: answer.period };
}

async function oneOf(plan: TagPlan, tag: IdTag, deadlineMs: number): Promise<Got> {
  if (simKind(plan).isText) {
    return { segments: [], texts: [await tag.nextString({ deadlineMs })], period: "" };
  }
  if (plan.kind !== "daily") return { segments: only(await tag.next({ deadlineMs })), period: "" };
  const { id, period } = await tag.nextPeriodId({ deadlineMs });
  return { segments: only(id), period };
}

/** An id that is there, or the next one: as a program does that would rather not wait. */
async function nowOf(tag: IdTag, deadlineMs: number): Promise<Got> {
  try {
    return { segments: only(tag.nextSync()), period: "" };
  } catch (thrown) {
    // It tells why the last load failed, which may be long ago, and has begun another one.
    if (isUnheardOf(IdmintError.from(thrown).reason)) throw thrown;
    return { segments: only(await tag.next({ deadlineMs })), period: "" };
  }
}

function only(id: bigint): readonly Segment[] {
  return [segmentOf(id, 1)];
}
