import { MemoryDatabase, type MemorySnapshot, MemoryStore } from "../../src/index.ts";
import type { Rpc } from "../world/rpc.ts";
import type { World } from "../world/world.ts";
import { SimServer, type SimServerParts } from "./server.ts";

/**
 * Why an SDK may take ids of another store from an address that it was given, and never from one that it learned: sentences of
 * docs/guarantees.md, word for word; a test looks.
 */
export const TRUSTED = {
  given: "The addresses that you give it are trusted: all of them must be servers of one store.",
  learned: "Addresses that it learns are proved by the list of this store.",
} as const;

export interface StrangerParts extends Pick<
  SimServerParts,
  "address" | "emit" | "settings" | "world"
> {
  readonly rpc: Rpc;
  /** What the other store has: tags of the same names. */
  readonly snapshot: MemorySnapshot;
  /** Callers whom the address leads astray: those who learned it. */
  readonly misleads: (caller: World) => boolean;
}

/** A server of another store appears at an address, for as long as the answer is not called. */
export function strangerAt({ rpc, snapshot, misleads, ...parts }: StrangerParts): () => void {
  const { world } = parts;
  const wallClock = (): number => Math.floor(world.wall());
  const database = new MemoryDatabase({ wallClock, randomToken: () => world.dice.token() });
  database.restore(snapshot);
  database.identity = snapshot.acceptedIdentity;
  const server = new SimServer({
    ...parts,
    instance: world.name,
    store: new MemoryStore({ database }),
    redisServers: [],
    ticketDatabases: [],
    rpc: { listen: (address, listener) => rpc.divert({ address, listener, misleads }) },
  });
  server.start().catch(() => undefined);
  return () => {
    world.kill();
    server.end();
  };
}
