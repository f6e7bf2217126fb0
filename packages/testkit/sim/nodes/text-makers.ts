import { ObjectIdMaker, type UuidLibrary, UuidMaker } from "@idmint/core";
import * as library from "uuid";
import type { World } from "../world/world.ts";

/** npm's uuid with the randomness and the clock of a node. */
export function uuidsOf(world: World): UuidLibrary {
  const { dice } = world;
  return {
    v1: library.v1,
    v3: library.v3,
    v4: () => library.v4({ random: dice.bytes(16) }),
    v5: library.v5,
    v6: library.v6,
    v7: () => library.v7({ random: dice.bytes(16), msecs: Math.floor(world.wall()) }),
  };
}

/** What makes UUIDs and ObjectIds in a program. */
export function textMakersOf(world: World): {
  readonly uuid: UuidMaker;
  readonly objectId: ObjectIdMaker;
} {
  const { dice } = world;
  const ports = {
    random: (count: number) => dice.bytes(count),
    now: () => Math.floor(world.wall()),
  };
  return {
    uuid: new UuidMaker(uuidsOf(world), ports),
    objectId: new ObjectIdMaker(ports, dice.bytes(3), dice.int(1, 32_000)),
  };
}
