import { IdmintError } from "@idmint/core";
import { acceptAsking, type Store } from "@idmint/core/server";
import {
  AdvanceTagRequest,
  AdvanceTagResponse,
  DeleteTagRequest,
  DeleteTagResponse,
  DrainNodeRequest,
  DrainNodeResponse,
  PauseTagRequest,
  PauseTagResponse,
  ResumeIssuingRequest,
  ResumeIssuingResponse,
  ResumeTagRequest,
  ResumeTagResponse,
  StopIssuingRequest,
  StopIssuingResponse,
  UndrainNodeRequest,
  UndrainNodeResponse,
} from "@idmint/proto";
import type { Services } from "../../server/src/main/services.ts";
import type { Fleet } from "./fleet.ts";
import { simKind } from "./kinds.ts";
import { Leads, type When } from "./leads.ts";
import { type Action, largeGap, type TagPlan } from "./plan.ts";
import { Makings } from "./operator/makings.ts";
import { callOnce, method, type Method } from "./nodes/transport.ts";
import type { World } from "./world/world.ts";

/** How often somebody looks whether the store is refused, and how long it is left so. */
const LOOK_MS = 1_000;
const LEFT_MS = 3_000;
const LEFT_ALONE_MS = 25_000;
const SMALL_GAP = 20n;
const DEADLINE_MS = 5_000;
const AGAIN_MS = 700;
/** For so long a command may still be under way after its answer: a proxy may have sent it twice. */
const UNDER_WAY_MS = 15_000;

/** What was to be taken back is so already. */
const GONE: readonly string[] = ["NODE_NOT_FOUND", "TAG_NOT_FOUND"];

const TAGS = "/idmint.v1.TagService";
const NODES = "/idmint.v1.NodeService";

const ADVANCE = method(`${TAGS}/AdvanceTag`, AdvanceTagRequest, AdvanceTagResponse);
const DELETE = method(`${TAGS}/DeleteTag`, DeleteTagRequest, DeleteTagResponse);
const PAUSE = method(`${TAGS}/PauseTag`, PauseTagRequest, PauseTagResponse);
const RESUME = method(`${TAGS}/ResumeTag`, ResumeTagRequest, ResumeTagResponse);
const STOP = method(`${NODES}/StopIssuing`, StopIssuingRequest, StopIssuingResponse);
const GO_ON = method(`${NODES}/ResumeIssuing`, ResumeIssuingRequest, ResumeIssuingResponse);
const DRAIN = method(`${NODES}/DrainNode`, DrainNodeRequest, DrainNodeResponse);
const UNDRAIN = method(`${NODES}/UndrainNode`, UndrainNodeRequest, UndrainNodeResponse);

/** Those whom a change concerns: they hear of some beforehand, and by when they are in effect. */
interface Concerned {
  hush(name: string): void;
  press(names: readonly string[], atMs: number): void;
}

/** An operator's own machine: commands to any server, and one that works on the store itself. */
export class Operator {
  readonly #fleet: Fleet;
  readonly #world: World;
  readonly #store: Store;
  readonly #concerned: Concerned;
  readonly #leads: Leads;
  readonly #makings: Makings;
  readonly #plans = new Map<string, TagPlan>();
  /** What was changed and is to be taken back, by what it is about. */
  readonly #owed = new Map<string, () => Promise<void>>();
  readonly #endings = new Map<string, readonly (() => void)[]>();
  /** When something was taken back last. */
  readonly #backAt = new Map<string, number>();
  #refusedSince: number | undefined;
  #isAccepting = false;
  #isOver = false;

  constructor(fleet: Fleet, concerned: Concerned) {
    this.#fleet = fleet;
    this.#concerned = concerned;
    this.#world = fleet.world("operator");
    this.#store = fleet.storeOf(this.#world);
    this.#leads = new Leads({
      world: this.#world,
      once: (its, request) => this.#once(its, request),
      hush: (name) => concerned.hush(name),
      slow: (delayMs) => {
        const ways = fleet.sdks.map(({ world }) => ["*", world.place] as const);
        return fleet.network.disturb(ways, { delayMs });
      },
    });
    this.#makings = new Makings({
      site: fleet.site,
      checker: fleet.checker,
      until: (its, requestOf, known) => this.#until(its, requestOf, known),
    });
    for (const tag of fleet.plan.tags) this.#plans.set(tag.name, tag);
    this.#watch();
  }

  /** Makes the tags of the history, on whatever server answers. */
  async begin(): Promise<void> {
    for (const plan of this.#plans.values()) {
      await this.#makings.make(plan);
    }
  }

  do(action: Action): void {
    void this.#act(action).catch((thrown: unknown) => {
      const { reason } = IdmintError.from(thrown);
      this.#fleet.trace.note(this.#world.name, `is refused ${action.act}: ${reason}`);
      if (reason === "INTERNAL") this.#fleet.checker.violate(String(thrown));
    });
  }

  /** Looks again and again that everything may issue: commands of before may still be under way. */
  async settle(): Promise<void> {
    this.#owed.clear();
    while (!this.#isOver) {
      await this.#restore();
      await this.#world.pause(LOOK_MS);
    }
  }

  async #restore(): Promise<void> {
    const { database, isRefused } = this.#fleet.site;
    if (isRefused) return;
    if (database.issuing.stoppedAtMs !== undefined) {
      this.#endEffects("stop");
      await this.#until(GO_ON, () => ResumeIssuingRequest.fromPartial({}));
    }
    for (const { server, isDraining } of database.traffic) {
      if (!isDraining) continue;
      await this.#until(UNDRAIN, () => UndrainNodeRequest.fromPartial({ node: server }), GONE);
    }
    for (const plan of this.#plans.values()) {
      const { name } = plan;
      const state = database.rows.get(name)?.state ?? "DELETED";
      if (state === "ACTIVE") continue;
      this.#endEffects(`pause ${name}`);
      this.#endEffects(`delete ${name}`);
      if (state === "PAUSED") {
        await this.#until(RESUME, () => ResumeTagRequest.fromPartial({ name }), GONE);
        continue;
      }
      await this.#makings.make(plan);
    }
  }

  isLost(name: string): boolean {
    return this.#makings.isLost(name);
  }

  stop(): void {
    this.#isOver = true;
  }

  get isStopped(): boolean {
    return this.#isOver && this.#world.timers === 0;
  }

  async #act(action: Action): Promise<void> {
    const names = [...this.#plans.keys()];
    const name = names[action.target % names.length] ?? "";
    this.#fleet.trace.note(this.#world.name, `${action.act} ${name}`);
    const { lead } = action;
    if (lead === undefined) return this.#change(action, name);
    await this.#leads.before(name, lead, () => this.#change(action, name));
  }

  async #change({ act, target, ms, lead }: Action, name: string): Promise<void> {
    const isLed = lead !== undefined;
    switch (act) {
      case "advance":
        return this.#advance(name, isLed);
      case "update":
        return this.#update(name);
      case "pause":
        return this.#pauseTag(name, ms, isLed);
      case "delete":
        return this.#delete(name, ms);
      case "drain":
        return this.#drain(this.#fleet.serverName(target), ms);
      case "stop-issuing":
        return this.#stopIssuing(ms);
      case "accept":
        // As after a restore that no server has seen.
        return this.#isAccepting ? undefined : this.#accept();
    }
  }

  async #advance(name: string, isLed: boolean): Promise<void> {
    const { checker, site } = this.#fleet;
    const plan = this.#plans.get(name);
    const floor = (site.database.rows.get(name)?.floor ?? 0n) + 500n;
    if (plan === undefined || floor >= plan.ceiling || !simKind(plan).hasFloor) return;
    const request = AdvanceTagRequest.fromPartial({ name, floor });
    const { answer, when } = await this.#once(ADVANCE, request);
    const hold = ({ atMs, era }: When): void => {
      if (atMs === undefined || era !== checker.era) return;
      checker.inEffect(name, atMs, floor);
      this.#concerned.press([name], atMs);
    };
    if (!answer.raised) return;
    hold(when(answer.effectiveTime));
    if (isLed) void this.#leads.after(name, answer.tag?.etag ?? "", hold);
  }

  /** Other settings: how much servers hold, and how long programs may. */
  async #update(name: string): Promise<void> {
    const { dice } = this.#world;
    if (this.#plans.get(name)?.kind !== "segment") return;
    const min = dice.int(1, 100);
    const maxAgeMs = dice.int(1, 20) * 1_000;
    await this.#leads.set(name, { min, max: min * dice.int(1, 10), maxAgeMs });
  }

  async #pauseTag(name: string, ms: number, isLed: boolean): Promise<void> {
    this.#owe(`pause ${name}`, ms, async () => {
      await this.#until(RESUME, () => ResumeTagRequest.fromPartial({ name }), GONE);
    });
    const { answer, when } = await this.#once(PAUSE, PauseTagRequest.fromPartial({ name }));
    const hold = (its: When): void => this.#stopped(`pause ${name}`, [name], its);
    hold(when(answer.effectiveTime));
    if (isLed) void this.#leads.after(name, answer.tag?.etag ?? "", hold);
  }

  async #delete(name: string, ms: number): Promise<void> {
    const plan = this.#plans.get(name);
    if (plan === undefined) return;
    this.#owe(`delete ${name}`, ms, async () => {
      // What was paused is not, when it is made anew.
      this.#endEffects(`pause ${name}`);
      await this.#makings.make(plan);
    });
    const { answer, when } = await this.#once(DELETE, DeleteTagRequest.fromPartial({ name }));
    this.#stopped(`delete ${name}`, [name], when(answer.effectiveTime));
  }

  async #drain(node: string, ms: number): Promise<void> {
    this.#owe(`drain ${node}`, ms, async () => {
      await this.#until(UNDRAIN, () => UndrainNodeRequest.fromPartial({ node }), GONE);
    });
    await this.#once(DRAIN, DrainNodeRequest.fromPartial({ node }));
  }

  async #stopIssuing(ms: number): Promise<void> {
    this.#owe("stop", ms, async () => {
      await this.#until(GO_ON, () => ResumeIssuingRequest.fromPartial({}));
    });
    const { answer, when } = await this.#once(STOP, StopIssuingRequest.fromPartial({}));
    this.#stopped("stop", [...this.#plans.keys()], when(answer.effectiveTime));
  }

  /** Nobody issues of these tags, from a moment on until what did it is taken back. */
  #stopped(what: string, names: readonly string[], { atMs, era }: When): void {
    const { checker, queue } = this.#fleet;
    // It may have been taken back already, or what takes back an earlier one may still be under way.
    if (atMs === undefined || era !== checker.era || !this.#owed.has(what)) return;
    if (queue.now - (this.#backAt.get(what) ?? -Infinity) < UNDER_WAY_MS) return;
    const ends = names.map((name) => checker.inEffect(name, atMs));
    this.#endings.set(what, [...(this.#endings.get(what) ?? []), ...ends]);
    this.#concerned.press(names, atMs);
  }

  #owe(what: string, afterMs: number, back: () => Promise<void>): void {
    const once = async (): Promise<void> => {
      if (this.#owed.get(what) !== once) return;
      this.#owed.delete(what);
      this.#fleet.trace.note(this.#world.name, `takes back ${what}`);
      this.#endEffects(what);
      await back();
    };
    this.#owed.set(what, once);
    this.#world.after(afterMs, () => void once());
  }

  #endEffects(what: string): void {
    this.#backAt.set(what, this.#fleet.queue.now);
    for (const end of this.#endings.get(what) ?? []) end();
    this.#endings.delete(what);
  }

  /** Asks some server, once. Answers also when the effect of the change begins, if that can be told. */
  async #once<Request, Response>(
    its: Method<Request, Response>,
    request: Request,
  ): Promise<{ readonly answer: Response; readonly when: (effective?: Date) => When }> {
    const { plan, addresses, checker } = this.#fleet;
    const { era } = checker;
    const target = this.#world.dice.int(0, plan.servers - 1);
    const server = this.#fleet.server(target)?.world;
    const set = server?.steps;
    const caller = this.#fleet.caller(this.#world);
    const answer = await callOnce(caller, addresses[target] ?? "", its, request, DEADLINE_MS);
    // By the clock of the server that said so, unless somebody set it meanwhile.
    const isKnown = server !== undefined && server.steps === set;
    const when = (effective?: Date): When => ({
      atMs: isKnown && effective !== undefined ? server.momentOf(effective.getTime()) : undefined,
      era,
    });
    return { answer, when };
  }

  /** Asks until it is done, or is refused with one of these reasons, which it answers. */
  async #until<Request, Response>(
    its: Method<Request, Response>,
    requestOf: () => Request,
    known: readonly string[] = [],
  ): Promise<string | undefined> {
    while (!this.#isOver) {
      try {
        await this.#once(its, requestOf());
        return undefined;
      } catch (thrown) {
        const { reason } = IdmintError.from(thrown);
        if (known.includes(reason)) return reason;
        this.#fleet.trace.note(this.#world.name, `${its.path}: ${reason}`);
        await this.#world.pause(AGAIN_MS);
      }
    }
    return undefined;
  }

  /** A store that is refused for a while is accepted, above what those who run say, and with a gap. */
  #watch(): void {
    this.#world.after(LOOK_MS, () => {
      if (this.#isOver) return;
      this.#watch();
      if (!this.isRefused || this.#isAccepting) {
        this.#refusedSince = undefined;
        return;
      }
      this.#refusedSince ??= this.#world.now();
      // Servers that accept it themselves do so at once, unless all were stopped.
      const leftMs = this.#fleet.plan.acceptsAlone ? LEFT_ALONE_MS : LEFT_MS;
      if (this.#world.now() - this.#refusedSince >= leftMs) void this.#accept();
    });
  }

  /** Whether the store is, or one of the servers that run refuses it, or a tag of it: an alarm tells of each. */
  get isRefused(): boolean {
    const { site, servers } = this.#fleet;
    return site.isRefused || servers.some(({ services }) => isFenced(services));
  }

  async #accept(): Promise<void> {
    this.#isAccepting = true;
    const { trace, checker, plan, site } = this.#fleet;
    const { clock, dice, name } = this.#world;
    // One that is too small for what servers were granted who are gone.
    const isSmall = dice.chance(0.4);
    const gap = isSmall && plan.smallGaps ? SMALL_GAP : largeGap(site.accepts);
    try {
      const asking = { store: this.#store, clock, timers: this.#world, nonce: dice.token() };
      const { maxOfflineMs } = plan;
      // Where claims reach the end of a tag, that is so: nobody lies here.
      const options = { gap, maxOfflineMs, trustClaims: true };
      const { claims } = await acceptAsking(asking, options);
      const spoken = claims.servers.filter(({ told }) => told === "all" || told === "since");
      trace.note(name, `accepted with a gap of ${gap}; ${spoken.length} servers spoke`);
    } catch (thrown) {
      const { reason, message } = IdmintError.from(thrown);
      trace.note(name, `cannot accept: ${message}`);
      if (reason === "INTERNAL") checker.violate(`an accept failed: ${String(thrown)}`);
    }
    this.#isAccepting = false;
  }
}

function isFenced(services: Services | undefined): boolean {
  return (
    services !== undefined && (services.poll.fenced !== "" || services.directory.fencedTags > 0)
  );
}
