import type { IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import { addressOf } from "../../shared/host-urls.ts";
import { type Choice, choosePrimary, type Look } from "./primary-state.ts";

/** Looks at one host; answers in bounded time, and never rejects. */
export type LookAt = (url: string) => Promise<Look>;

/** How long the others are waited for once a primary has answered, in milliseconds. */
const OTHERS_MS = 300;
/** How old a look may be before the hosts are looked at again, beside the work. */
const FRESH_MS = 2_000;

/**
 * Which of several hosts is the primary. It is looked for when work begins that does not know it, and again after every
 * connection that failed. While all is well all hosts are looked at from time to time: two primaries are refused also when
 * the second one comes up later.
 */
export class Primary {
  readonly #urls: readonly string[];
  readonly #lookAt: LookAt;
  #url: string | undefined;
  #refused: IdmintError | undefined;
  #looking: Promise<string> | undefined;
  #lookedAtMs = -Infinity;

  constructor(urls: readonly string[], lookAt: LookAt) {
    this.#urls = urls;
    this.#lookAt = lookAt;
  }

  /** The primary's URL. Rejects when there is none, or when more than one host could be it. */
  async url(): Promise<string> {
    const [only = "", ...others] = this.#urls;
    if (others.length === 0) return only;
    if (this.#url === undefined) return this.#look();
    if (performance.now() - this.#lookedAtMs > FRESH_MS) this.#look().catch(() => undefined);
    if (this.#refused !== undefined) throw this.#refused;
    return this.#url;
  }

  /** A connection to it failed: it may be another one now. */
  forget(): void {
    this.#url = undefined;
  }

  #look(): Promise<string> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined;
      this.#lookedAtMs = performance.now();
    });
    return this.#looking;
  }

  async #lookOnce(): Promise<string> {
    const known = this.#url;
    const choice = await this.#choose();
    if (choice.type === "primary") {
      this.#refused = undefined;
      this.#url = this.#urls[choice.at] ?? "";
      return this.#url;
    }
    const { error } = choice;
    // A host that is silent for a moment says nothing against a connection that works.
    if (known !== undefined && this.#url === known && error.retryable) return known;
    this.#refused = error;
    throw error;
  }

  /**
   * Hosts are not asked at one moment: a primary may answer and die before the standby, promoted since, answers too. Both
   * are primaries only when they say so once more, each after the other has said it.
   */
  async #choose(): Promise<Choice> {
    const choice = choosePrimary(await this.#looks());
    if (choice.type === "primary" || choice.error.retryable) return choice;
    return choosePrimary(await this.#looks());
  }

  /** What all hosts say; those that are slow count as silent soon after a primary has answered. */
  async #looks(): Promise<readonly Look[]> {
    const hasPrimary = Promise.withResolvers<void>();
    const works = this.#urls.map(async (url) => {
      const look = await this.#lookAt(url);
      if (look.type === "server" && look.isPrimary) hasPrimary.resolve();
      return look;
    });
    const late = async (url: string): Promise<Look> => {
      await hasPrimary.promise;
      await new Promise((resolve) => setTimeout(resolve, OTHERS_MS));
      const error = storeUnavailable("the host did not answer in time");
      return { type: "silent", address: addressOf(url), error };
    };
    return Promise.all(
      this.#urls.map((url, at) => Promise.race([works[at] as Promise<Look>, late(url)])),
    );
  }
}
