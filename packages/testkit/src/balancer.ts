import { TcpProxy } from "./tcp-proxy.ts";

const PROBE_MS = 1_000;

/** A server behind a balancer. */
export interface Backend {
  readonly port: number;
  /** What its probes ask. */
  readonly readyz: string;
}

interface Probed extends Backend {
  isReady: boolean;
  accepted: number;
}

/**
 * A balancer of TCP as many are: it asks servers each second whether they are ready, gives new connections to those that are, in
 * turns, and leaves alone those that there are. Close it.
 */
export class Balancer {
  readonly #backends: readonly Probed[];
  readonly #probing: NodeJS.Timeout;
  #proxy: TcpProxy | undefined;
  #turn = 0;

  private constructor(backends: readonly Backend[]) {
    this.#backends = backends.map((each) => ({ ...each, isReady: false, accepted: 0 }));
    this.#probing = setInterval(() => void this.#probe(), PROBE_MS);
  }

  /** Begins when it has asked all of them once. */
  static async start(backends: readonly Backend[]): Promise<Balancer> {
    const balancer = new Balancer(backends);
    await balancer.#probe();
    balancer.#proxy = await TcpProxy.start(() => balancer.#next());
    return balancer;
  }

  get port(): number {
    return this.#proxy?.port ?? 0;
  }

  /** What its last probe of a server said. */
  isReady(at: number): boolean {
    return this.#backends[at]?.isReady === true;
  }

  /** How many connections a server was given. */
  accepted(at: number): number {
    return this.#backends[at]?.accepted ?? 0;
  }

  async close(): Promise<void> {
    clearInterval(this.#probing);
    await this.#proxy?.close();
  }

  #next(): { readonly host: string; readonly port: number } {
    const ready = this.#backends.filter(({ isReady }) => isReady);
    // Where none is ready, any is as good as another.
    const candidates = ready.length > 0 ? ready : this.#backends;
    const next = candidates[this.#turn++ % candidates.length];
    if (next === undefined) throw new Error("a balancer without servers");
    next.accepted++;
    return { host: "127.0.0.1", port: next.port };
  }

  async #probe(): Promise<void> {
    await Promise.all(
      this.#backends.map(async (each) => {
        try {
          const signal = AbortSignal.timeout(PROBE_MS);
          each.isReady = (await fetch(each.readyz, { signal })).ok;
        } catch {
          each.isReady = false;
        }
      }),
    );
  }
}
