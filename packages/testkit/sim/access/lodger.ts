import { GenerateIdsRequest } from "@idmint/proto";
import type { Fleet } from "../fleet.ts";
import { gotOf, type Load } from "../load.ts";
import { callOnce, METHODS } from "../nodes/transport.ts";
import { Dice } from "../world/random.ts";
import type { World } from "../world/world.ts";
import { type AccessPlan, LODGER } from "./access-plan.ts";
import { headerOf } from "./badges.ts";
import { QuotaLog } from "./quota-log.ts";
import { IdmintError } from "@idmint/core";

const EVERY_MS = 900;
const DEADLINE_MS = 2_000;
const TAG = "loose";
const BURST_SHARE = 0.1;
const BURST_CALLS = 24;
const MOST_IDS = 16;
/** Servers that one may take for alive: those that run, and lives of them that ended. */
const LIVES = 4;
/** When all is well, each server is asked so often at once, and so often again. */
const ROUND_CALLS = 10;
const ROUNDS = 2;
const ROUND_MS = 500;

/** A principal with a quota, which it uses up at times. */
export class Lodger {
  readonly #fleet: Fleet;
  readonly #load: Load;
  readonly #world: World;
  readonly #dice: Dice;
  readonly #log: QuotaLog;
  /** Whether the network brings each request once. */
  readonly #isOnce: boolean;

  constructor(fleet: Fleet, load: Load, { lodgerCalls: calls, lodgerIds: ids }: AccessPlan) {
    const { plan } = fleet;
    this.#fleet = fleet;
    this.#load = load;
    this.#world = fleet.world(LODGER);
    this.#dice = new Dice(`${plan.seed}/${LODGER}`);
    this.#log = new QuotaLog({ calls, ids }, LIVES * plan.servers);
    this.#isOnce = plan.faults.every(({ kind }) => kind !== "requests sent twice");
    load.ofCaller(this.#world, this.#dice, () => this.#ask(), EVERY_MS);
  }

  /** All is well, and each server knows of all others: together they keep the quota. */
  async askAll(): Promise<void> {
    const { addresses, checker, plan, queue } = this.#fleet;
    const sinceMs = queue.now;
    const all: Promise<void>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const to of addresses) {
        for (let calls = 0; calls < ROUND_CALLS; calls++) all.push(this.#call(to, 1));
      }
      await this.#world.pause(ROUND_MS);
    }
    const untilMs = queue.now;
    await Promise.all(all);
    const wrong = this.#log.together(plan.servers, sinceMs, untilMs);
    if (wrong !== undefined) checker.violate(`${LODGER}: ${wrong}`);
  }

  async #ask(): Promise<void> {
    const dice = this.#dice;
    const to = dice.pick(this.#fleet.addresses);
    const isBurst = dice.chance(BURST_SHARE);
    const calls = isBurst ? BURST_CALLS : 1;
    await Promise.all(
      Array.from({ length: calls }, () => this.#call(to, dice.int(1, isBurst ? 2 : MOST_IDS))),
    );
  }

  async #call(to: string, count: number): Promise<void> {
    const { badges, checker, queue, rpc } = this.#fleet;
    const world = this.#world;
    const server = rpc.at(to)?.world;
    const isCertain = this.#isOnce && server?.stops === 0 && server.steps === 0;
    const sent = this.#log.sent(server?.name ?? to, count, queue.now, isCertain);
    const caller = { rpc, world, authorization: headerOf(badges.lodger) };
    const asker = { name: world.name, isSdk: false };
    const request = GenerateIdsRequest.fromPartial({ tag: TAG, count, asList: true });
    let outcome: Parameters<QuotaLog["ended"]>[1] = "unknown";
    await this.#load.call(world, asker, TAG, DEADLINE_MS, async () => {
      try {
        const answer = await callOnce(caller, to, METHODS.generate, request, DEADLINE_MS);
        outcome = "answered";
        return gotOf(answer, TAG);
      } catch (thrown) {
        if (IdmintError.from(thrown).reason === "QUOTA_EXCEEDED") outcome = "over quota";
        throw thrown;
      }
    });
    const wrong = this.#log.ended(sent, outcome, queue.now);
    if (wrong !== undefined) checker.violate(`${LODGER}: ${wrong}`);
  }
}
