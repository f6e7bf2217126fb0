import { UnguessableIds, UuidMaker } from "@idmint/core";
import { Fleet as Servers } from "../../client/src/servers/fleet.ts";
import { CallStream } from "../../server/src/doors/call-stream.ts";
import { IdService } from "../../server/src/service/issue/ids.ts";
import { Ledger } from "../../server/src/service/ledger.ts";
import type { PlantedFault } from "./planted-fault.ts";
import { replaced, wrapped } from "./replaced.ts";

/** Of each third or fifth, so that most of a history goes well. */
const EACH = 3;

/** Faults of what stands between the domain and its callers. */
export const PLANTED_API: Readonly<Record<string, PlantedFault>> = {
  "requests of a stream answered twice": {
    about: "a server that answers a request on a stream, and then again",
    noticed: /which nobody waits for/,
    plant: () => {
      let requests = 0;
      return {
        patch: () =>
          wrapped(
            CallStream.prototype,
            "take",
            (take) =>
              function twice(this: CallStream, ...message) {
                take.apply(this, message);
                if (++requests % EACH === 0) take.apply(this, message);
              },
          ),
      };
    },
  },
  "fewer ids than asked for": {
    about: "a server that takes a high count for a lower one",
    noticed: /ids, not \d/,
    plant: () => ({
      patch: () =>
        wrapped(
          IdService.prototype,
          "generateIds",
          (generateIds) =>
            function fewer(this: IdService, request, call) {
              const count = Math.min(request.count, 10);
              return generateIds.call(this, { ...request, count }, call);
            },
        ),
    }),
  },
  "somebody else's name in the ledger": {
    about: "a server that notes who asked before, and not who asks",
    noticed: /the ledger names/,
    plant: () => {
      let before: Parameters<Ledger["allocated"]>[3] | undefined;
      return {
        patch: () =>
          wrapped(
            Ledger.prototype,
            "allocated",
            (allocated) =>
              function wrong(this: Ledger, tag, segments, epoch, client) {
                allocated.call(this, tag, segments, epoch, before ?? client);
                before = client;
              },
          ),
      };
    },
  },
  "a UUID made twice": {
    about: "a process whose randomness and time come again",
    noticed: /got [0-9a-f-]{36}, which/,
    plant: () => {
      let last: string | undefined;
      let made = 0;
      return {
        patch: () =>
          wrapped(
            UuidMaker.prototype,
            "next",
            (next) =>
              function again(this: UuidMaker, kind, name) {
                if (last !== undefined && ++made % EACH === 0) return last;
                last = next.call(this, kind, name);
                return last;
              },
          ),
      };
    },
  },
  "learned addresses not proved": {
    about: "an SDK that takes ids from whoever answers at an address that it learned",
    noticed: /had got|never granted/,
    needs: "another store's server at an address",
    // It waits for 12 s for a server that knew its store before, and grants nothing meanwhile.
    needsMs: 20_000,
    plant: () => ({
      patch: () => {
        const ends = [
          replaced(Servers.prototype, "isOfStore", () => true),
          replaced(Servers.prototype, "identify", () =>
            Promise.resolve({ isOfStore: true, isServing: true }),
          ),
        ];
        return () => ends.forEach((end) => end());
      },
    }),
  },
  "two numbers become one id": {
    about: "a key that hides two numbers behind one id",
    noticed: /coupons: .* had got|never granted/,
    plant: () => ({
      patch: () =>
        wrapped(
          UnguessableIds.prototype,
          "hide",
          (hide) =>
            function blunt(this: UnguessableIds, number, keyId) {
              return hide.call(this, number | 1n, keyId);
            },
        ),
    }),
  },
};
