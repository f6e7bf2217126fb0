import type { Token } from "@idmint/core/server";
import { Access } from "../../../server/src/service/access/access.ts";
import { Admission } from "../../../server/src/service/admission/admission.ts";
import type { PlantedFault } from "../planted-fault.ts";
import { replaced, wrapped } from "../replaced.ts";

/** More servers than there are. */
const MANY = 1_000;

/** Faults of who may what, and how much. */
export const PLANTED_ACCESS: Readonly<Record<string, PlantedFault>> = {
  "revoked tokens stay": {
    about: "a server that hears of new tokens, and of none that was revoked",
    noticed: /was answered .*revoked/,
    needsAccess: true,
    plant: () => ({
      serverStore: (store) => {
        const read = store.readTokens.bind(store);
        const known = new Map<string, Token>();
        return Object.assign(store, {
          readTokens: async (version: string | undefined) => {
            const list = await read(version);
            if (list.tokens === undefined) return list;
            for (const token of list.tokens) known.set(token.id, token);
            return { ...list, tokens: [...known.values()] };
          },
        });
      },
    }),
  },
  "rights not looked at": {
    about: "a server that lets whoever it knows do everything",
    noticed: /beyond its rights/,
    needsAccess: true,
    plant: () => ({
      patch: () =>
        replaced(Access.prototype, "authorise", function known(this: Access, principal) {
          this.assertKnown(principal);
        }),
    }),
  },
  "quotas not kept": {
    about: "a server that admits whatever comes",
    noticed: /lodger: \S+ admitted \d+ calls/,
    needsAccess: true,
    plant: () => ({
      patch: () => replaced(Admission.prototype, "charged", (_call, _cost, work) => work()),
    }),
  },
  "quotas not shared": {
    about: "servers that each take a quota for their own",
    noticed: /were admitted by \d servers/,
    needsAccess: true,
    plant: () => ({ patch: () => replaced(Admission.prototype, "check", () => undefined) }),
  },
  "quotas too small": {
    about: "servers that share a quota with others that do not exist",
    noticed: /though its quota allows it/,
    needsAccess: true,
    plant: () => ({
      patch: () =>
        wrapped(
          Admission.prototype,
          "check",
          (check) =>
            function crowded(this: Admission) {
              check.call(this, MANY);
            },
        ),
    }),
  },
};
