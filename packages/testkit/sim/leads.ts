import { durationOf, IdmintError } from "@idmint/core";
import {
  GetTagEffectRequest,
  GetTagEffectResponse,
  Tag,
  UpdateTagRequest,
  UpdateTagResponse,
} from "@idmint/proto";
import { method, type Method } from "./nodes/transport.ts";
import type { Lead, TagPlan } from "./plan.ts";
import type { World } from "./world/world.ts";

const TAGS = "/idmint.v1.TagService";
const UPDATE = method(`${TAGS}/UpdateTag`, UpdateTagRequest, UpdateTagResponse);
const EFFECT = method(`${TAGS}/GetTagEffect`, GetTagEffectRequest, GetTagEffectResponse);

const LEAST_AGE_MS = 1_000;
/** How often a change that was refused is tried again, and how often somebody asks when it is in effect. */
const TRIES = 5;
const LOOKS = 6;
const LOOK_MS = 400;

/** When the effect of a change begins, and in which state of the store it was made. */
export interface When {
  readonly atMs: number | undefined;
  readonly era: number;
}

/** Asks some server, once. Answers also when the effect of the change begins, if that can be told. */
type Once = <Request, Response>(
  its: Method<Request, Response>,
  request: Request,
) => Promise<{ readonly answer: Response; readonly when: (effective?: Date) => When }>;

interface LeadPorts {
  readonly world: World;
  readonly once: Once;
  /** Programs ask for this tag no more until a change of it is in effect. */
  readonly hush: (name: string) => void;
  /** Whatever is sent to programs is on its way for so long; the answer ends that. */
  readonly slow: (ms: number) => () => void;
}

/** What an operator does around changes that end ids while programs hold some. */
export class Leads {
  readonly #ports: LeadPorts;

  constructor(ports: LeadPorts) {
    this.#ports = ports;
  }

  async set(
    name: string,
    { maxAgeMs, ...sizes }: Pick<TagPlan, "min" | "max" | "maxAgeMs">,
  ): Promise<void> {
    const value = { ...sizes, maxAge: durationOf(maxAgeMs) };
    const tag = Tag.fromPartial({ name, kind: { $case: "segment", value } });
    const updateMask = ["segment.min", "segment.max", "segment.max_age"];
    await this.#ports.once(UPDATE, UpdateTagRequest.fromPartial({ tag, updateMask }));
  }

  /** Programs get ids to hold, and then perhaps hear of another `max_age`, and the change comes. */
  async before(name: string, lead: Lead, change: () => Promise<void>): Promise<void> {
    const { min, maxAgeMs, waitMs, slowMs, isShortened, gapMs, isHushed } = lead;
    const sizes = { min, max: min };
    await this.#tried(() => this.set(name, { ...sizes, maxAgeMs }));
    await this.#ports.world.pause(waitMs);
    const fast = slowMs > 0 ? this.#ports.slow(slowMs) : undefined;
    try {
      await this.#ports.world.pause(slowMs);
      if (isHushed) this.#ports.hush(name);
      if (isShortened)
        await this.#tried(() => this.set(name, { ...sizes, maxAgeMs: LEAST_AGE_MS }));
      await this.#ports.world.pause(gapMs);
      await this.#tried(change);
      await this.#ports.world.pause(slowMs);
    } finally {
      fast?.();
    }
  }

  /** As servers confirm a change, another one says an earlier time. */
  async after(name: string, etag: string, heard: (when: When) => void): Promise<void> {
    for (let looks = 0; looks < LOOKS; looks++) {
      await this.#ports.world.pause(LOOK_MS);
      try {
        const request = GetTagEffectRequest.fromPartial({ name });
        const { answer, when } = await this.#ports.once(EFFECT, request);
        if (answer.tag?.etag === etag) heard(when(answer.effectiveTime));
      } catch {
        // The next look may be at a server that is well.
      }
    }
  }

  async #tried(change: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await change();
      } catch (thrown) {
        if (tries === TRIES || !IdmintError.from(thrown).retryable) throw thrown;
        await this.#ports.world.pause(LOOK_MS);
      }
    }
  }
}
