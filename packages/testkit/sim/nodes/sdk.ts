import type { IdTag } from "../../../client/src/api.ts";
import { BufferedIdClient, type ClientPorts } from "../../../client/src/client.ts";
import type { IdClientOptions } from "../../../client/src/options.ts";
import type { Transport } from "../../../client/src/servers/channel.ts";
import { textMakersOf } from "./text-makers.ts";
import { simTransport, type SimTransportPorts } from "./transport.ts";
import type { World } from "../world/world.ts";

/** A program with the SDK: the real client above its transport. */
export class SimSdk {
  readonly world: World;
  readonly client: BufferedIdClient;
  /** The addresses that it was given. */
  readonly addresses: readonly string[];
  /** Held, so that no tag hangs on when garbage is collected. */
  readonly #tags = new Map<string, IdTag>();
  #closing: Promise<void> | undefined;

  constructor(
    { world, rpc, authorization }: SimTransportPorts,
    options: IdClientOptions,
    around: (transport: Transport) => Transport = (same) => same,
  ) {
    this.world = world;
    this.addresses = [options.addresses ?? []].flat();
    const transport = around(simTransport({ rpc, world, authorization }));
    const ports: ClientPorts = { transport: () => transport, runtime: runtimeOf(world) };
    const worker = { instance: world.name };
    this.client = new BufferedIdClient({ ...options, worker }, ports);
  }

  /** Whether it was told to end. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  close(): Promise<void> {
    this.#closing ??= this.client.close();
    return this.#closing;
  }

  tag(name: string): IdTag {
    const known = this.#tags.get(name);
    if (known !== undefined) return known;
    const tag = this.client.tag(name);
    this.#tags.set(name, tag);
    return tag;
  }
}

function runtimeOf(world: World): ClientPorts["runtime"] {
  const stops = new Set<() => void>();
  let makers: ReturnType<typeof textMakersOf> | undefined;
  const timers = {
    after: (delayMs: number, run: () => void): (() => void) => {
      const stop = world.after(delayMs, () => {
        stops.delete(stop);
        run();
      });
      stops.add(stop);
      return () => {
        stop();
        stops.delete(stop);
      };
    },
  };
  return {
    clock: world.clock,
    onLeap: (run) => world.onLeap(run),
    timers,
    quietTimers: timers,
    wallClock: () => world.wall(),
    random: () => world.dice.next(),
    afterTurn: (run) => world.afterTurn(run),
    every: (periodMs, run) => {
      let stop: (() => void) | undefined;
      const later = (): void => {
        stop = world.after(periodMs, () => {
          later();
          run();
        });
      };
      later();
      return () => stop?.();
    },
    textMakers: () => (makers ??= textMakersOf(world)),
    processId: () => 1,
    isBuildingSnapshot: () => false,
    close: () => {
      for (const stop of stops) stop();
      stops.clear();
    },
  };
}
