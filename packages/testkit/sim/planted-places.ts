import { RedisMarks } from "../../server/src/service/redis/marks.ts";
import { MemoryTicketDatabase } from "../src/index.ts";
import { RedisHashes } from "../src/memory/redis/hashes.ts";
import type { PlantedFault } from "./planted-fault.ts";
import { replaced, wrapped } from "./replaced.ts";

/** Faults of what counts beside the store. */
export const PLANTED_PLACES: Readonly<Record<string, PlantedFault>> = {
  "Redis counts on": {
    about:
      "a Redis that counts on from whatever it came back with, and servers that tell each other nothing of it",
    noticed: /counted_in_redis: .* (?:had got|after)/,
    needs: "Redis restarts",
    needsKind: "counted_in_redis",
    plant: () => ({
      patch: () => {
        const ends = [
          wrapped(
            RedisHashes.prototype,
            "check",
            (check) =>
              function credulous(this: RedisHashes, ...asked) {
                const doubt = check.apply(this, asked);
                return doubt?.status === "restarted" ? undefined : doubt;
              },
          ),
          replaced(RedisMarks.prototype, "of", () => 0n),
        ];
        return () => ends.forEach((end) => end());
      },
    }),
  },
  "Redis set back, and nobody heeds it": {
    about: "servers that do not heed how far Redis had counted for others when it is set back",
    noticed: /counted_in_redis: .* (?:had got|after)/,
    needs: "Redis set back while it runs",
    needsKind: "counted_in_redis",
    plant: () => ({
      patch: () => {
        const ends = [
          replaced(RedisMarks.prototype, "of", () => 0n),
          replaced(RedisMarks.prototype, "newest", () => 0n),
        ];
        return () => ends.forEach((end) => end());
      },
    }),
  },
  "two databases with one residue": {
    about: "a ticket database that goes on with a slot that it gave to another one",
    noticed: /ticket: .* (?:had got|a second time)/,
    needs: "slots of tickets moved",
    needsKind: "ticket",
    plant: () => ({
      patch: () =>
        wrapped(
          MemoryTicketDatabase.prototype,
          "freeze",
          (freeze) =>
            async function generous(this: MemoryTicketDatabase, request) {
              const restore = this.backup();
              const frozen = await freeze.call(this, request);
              // It says so, and does not.
              restore(false);
              return frozen;
            },
        ),
    }),
  },
};
