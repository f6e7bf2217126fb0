import { IdmintError, SegmentBuffer } from "@idmint/core";
import { type Grant, type GrantRequest, type Store, VersionGuard } from "@idmint/core/server";
import { AnswerCheck } from "../../client/src/answers.ts";
import type { Transport } from "../../client/src/servers/channel.ts";
import { Directory } from "../../server/src/service/issue/directory.ts";
import { PLANTED_ACCESS } from "./access/planted-access.ts";
import { PLANTED_API } from "./planted-api.ts";
import { PLANTED_PLACES } from "./planted-places.ts";
import type { PlantedFault } from "./planted-fault.ts";
import { replaced } from "./replaced.ts";

type Granted = Extract<Grant, { outcome: "granted" }>;
type Granting = Store["grant"];

function half(count: number): number {
  return Math.ceil(count / 2);
}

/** A store whose grants are made in another way. */
function granting(
  store: Store,
  by: (requests: readonly GrantRequest[], real: Granting) => ReturnType<Granting>,
): Store {
  const real = store.grant.bind(store);
  return Object.assign(store, { grant: (requests: readonly GrantRequest[]) => by(requests, real) });
}

export const PLANTED: Readonly<Record<string, PlantedFault>> = {
  "store grants twice": {
    about: "a store that grants a range again, to whoever asks next",
    noticed: /had got/,
    plant: () => {
      const last = new Map<string, Granted>();
      let grants = 0;
      return {
        store: {
          answered: (name, answer) => {
            if (name !== "grant") return answer;
            return (answer as readonly Grant[]).map((grant) => {
              if (grant.outcome !== "granted") return grant;
              const before = last.get(grant.tag);
              last.set(grant.tag, grant);
              const isAgain = before !== undefined && before.count >= grant.count;
              return isAgain && ++grants % 5 === 0 ? { ...grant, base: before.base } : grant;
            }) as typeof answer;
          },
        },
      };
    },
  },
  "more than was granted": {
    about: "a server that takes more ids of a grant than the store wrote down",
    noticed: /had got|never granted/,
    plant: () => ({
      serverStore: (store) =>
        granting(store, async (requests, real) =>
          (
            await real(requests.map((one) => ({ ...one, count: half(one.count), minCount: 1 })))
          ).map((grant, at) =>
            grant.outcome === "granted"
              ? { ...grant, count: requests[at]?.count ?? grant.count }
              : grant,
          ),
        ),
    }),
  },
  "no version guard": {
    about: "a server that does not remember what it was granted, before a store that went back",
    noticed: /had got/,
    needs: "store went back, unseen",
    plant: () => ({
      store: { forgetsMarks: true },
      serverStore: (store) =>
        granting(store, (requests, real) =>
          real(requests.map((request) => ({ ...request, seenVersion: 0n }))),
        ),
      patch: () => {
        const ends = [
          replaced(VersionGuard.prototype, "admitGrant", () => true),
          replaced(VersionGuard.prototype, "admitIds", () => "new"),
        ];
        return () => ends.forEach((end) => end());
      },
    }),
  },
  "unknown outcome used": {
    about: "a server that takes a grant for done whose answer it did not get",
    noticed: /had got|never granted/,
    needs: "store hangs",
    plant: () => ({ serverStore: guessing }),
  },
  "answer used twice": {
    about: "an SDK that uses an answer of a server a second time",
    noticed: /had got/,
    plant: () => ({
      transport: repeating,
      patch: () => replaced(AnswerCheck.prototype, "assertNew", () => undefined),
    }),
  },
  "answers that come again": {
    about: "a network that hands an SDK an answer a second time; it refuses that, and says so",
    noticed: /SEGMENT_INVALID/,
    plant: () => ({ transport: repeating }),
  },
  "sequence from memory": {
    about: "servers that take ids of a sequence in advance",
    noticed: /got {2}?\S* ?\d+ after/,
    plant: () => ({
      serverStore: (store) => {
        const left: Granted[] = [];
        return granting(store, async (requests, real) => {
          const [only] = requests;
          if (only?.tag !== "strict" || requests.length > 1) return real(requests);
          const kept = left.findIndex(({ count }) => count >= only.count);
          const [one] = kept < 0 ? [] : left.splice(kept, 1);
          if (one !== undefined) return [{ ...one, count: only.count }];
          const [grant] = await real([
            { ...only, count: only.count + 4, minCount: only.count + 4 },
          ]);
          if (grant?.outcome !== "granted") return grant === undefined ? [] : [grant];
          const base = grant.base + BigInt(only.count);
          left.push({ ...grant, base, count: grant.count - only.count });
          return [{ ...grant, count: only.count }];
        });
      },
      // What it takes out of its memory is below what it was granted last.
      patch: () => {
        const ends = [
          replaced(VersionGuard.prototype, "admitGrant", () => true),
          replaced(VersionGuard.prototype, "admitIds", () => "new"),
        ];
        return () => ends.forEach((end) => end());
      },
    }),
  },
  "changes not obeyed": {
    about: "servers that say they obeyed a change of an operator, and go on",
    noticed: /was in effect/,
    needsAction: "advance",
    plant: () => ({
      patch: () => {
        const ends = [
          replaced(Directory.prototype, "apply", () => Promise.resolve()),
          replaced(SegmentBuffer.prototype, "observeEpoch", () => undefined),
        ];
        return () => ends.forEach((end) => end());
      },
    }),
  },
  "answers never come": {
    about: "an SDK whose calls are not ended by anything",
    noticed: /never ended|waited|no answer/,
    plant: () => ({
      transport: (transport) => ({
        ...transport,
        generate: () => new Promise(() => undefined),
      }),
    }),
  },
  "store given up": {
    about: "a server that never asks its store again once it failed",
    noticed: /no answer|servers serve/,
    needs: "store down",
    plant: () => ({
      serverStore: (store) => {
        let failure: IdmintError | undefined;
        return granting(store, async (requests, real) => {
          if (failure !== undefined) throw failure;
          try {
            return await real(requests);
          } catch (thrown) {
            failure = IdmintError.from(thrown);
            throw failure;
          }
        });
      },
    }),
  },
  ...PLANTED_ACCESS,
  ...PLANTED_API,
  ...PLANTED_PLACES,
};

/** Where a grant is not answered, it takes the ids that follow the last one. */
function guessing(store: Store): Store {
  const ends = new Map<string, Granted>();
  return granting(store, async (requests, real) => {
    try {
      const grants = await real(requests);
      for (const one of grants) if (one.outcome === "granted") ends.set(one.tag, one);
      return grants;
    } catch (thrown) {
      const guessed = requests.flatMap(({ tag, count }) => {
        const last = ends.get(tag);
        if (last === undefined) return [];
        const base = last.base + BigInt(last.count);
        const next = { ...last, base, version: last.version + 1n, count };
        ends.set(tag, next);
        return [next];
      });
      if (guessed.length < requests.length) throw thrown;
      return guessed;
    }
  });
}

/** Each third answer to AllocateSegment is the one before it. */
function repeating(transport: Transport): Transport {
  let last: Awaited<ReturnType<Transport["allocate"]>> | undefined;
  let calls = 0;
  return {
    ...transport,
    allocate: async (...asked) => {
      const [, { tag }] = asked;
      const answer = await transport.allocate(...asked);
      if (tag !== "loose") return answer;
      const before = last;
      last = answer;
      return before !== undefined && ++calls % 3 === 0 ? before : answer;
    },
  };
}
