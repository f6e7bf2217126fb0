import { CreateTagRequest, CreateTagResponse } from "@idmint/proto";
import type { Checker } from "../check/checker.ts";
import { protoOf, simKind } from "../kinds.ts";
import { method, type Method } from "../nodes/transport.ts";
import type { StoreSite } from "../nodes/store-site.ts";
import { largeGap, type TagPlan } from "../plan.ts";

const CREATE = method("/idmint.v1.TagService/CreateTag", CreateTagRequest, CreateTagResponse);
/** There is no such tag: nothing is left between its start and its ceiling, or the store knows better. */
const IMPOSSIBLE: readonly string[] = ["INVALID_ARGUMENT", "VALUE_OUT_OF_RANGE"];
const KNOWN: readonly string[] = ["TAG_EXISTS", "STORE_EPOCH_CHANGED", ...IMPOSSIBLE];

interface MakingPorts {
  readonly site: StoreSite;
  readonly checker: Checker;
  /** Asks until it is done, or is refused with one of these reasons, which it answers. */
  readonly until: <Request, Response>(
    its: Method<Request, Response>,
    requestOf: () => Request,
    known: readonly string[],
  ) => Promise<string | undefined>;
}

/**
 * How an operator makes tags, and makes them anew.
 *
 * INVARIANT: a name of which the store has lost all begins above what anybody may have of it, as docs/restore.md wants: no gap reaches
 * a tag without a row. Where its kind has no such start, it is not made anew.
 */
export class Makings {
  readonly #ports: MakingPorts;
  /** The first ids of tags, as they were asked for last. */
  readonly #starts = new Map<string, bigint>();
  /** Tags that cannot be made anew: no start is above all, or an accept left no id below their ceiling. */
  readonly #lost = new Set<string>();

  constructor(ports: MakingPorts) {
    this.#ports = ports;
  }

  async make(plan: TagPlan): Promise<void> {
    const { name, kind, ceiling } = plan;
    const { hasPeriods, isTimed, isText } = simKind(plan);
    if (hasPeriods && this.#isMissing(name)) {
      this.#lost.add(name);
      return;
    }
    const requestOf = (): CreateTagRequest => ({
      tag: protoOf(plan, this.#startOf(name)),
      validateOnly: false,
    });
    const refused = await this.#ports.until(CREATE, requestOf, KNOWN);
    // A name that the store has lost stands for numbers that nobody hid or wrote.
    const isWritten = isText || kind === "coupons";
    const isImpossible = refused !== undefined && IMPOSSIBLE.includes(refused);
    if (isImpossible && (ceiling < largeGap(0) || isTimed || isWritten)) this.#lost.add(name);
  }

  isLost(name: string): boolean {
    return this.#lost.has(name);
  }

  /** Whether the store may have lost all that it knew of a name. */
  #isMissing(name: string): boolean {
    const { checker, site } = this.#ports;
    return checker.era > 0 && !site.database.rows.has(name);
  }

  #startOf(name: string): bigint {
    const before = this.#starts.get(name) ?? 1n;
    const more = this.#isMissing(name) ? largeGap(this.#ports.site.accepts) : 0n;
    this.#starts.set(name, before + more);
    return before + more;
  }
}
