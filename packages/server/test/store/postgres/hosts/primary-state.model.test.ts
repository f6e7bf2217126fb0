import { IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { choosePrimary, type Look } from "../../../../src/store/postgres/hosts/primary-state.ts";

type Server = Extract<Look, { type: "server" }>;

const server: fc.Arbitrary<Omit<Server, "address">> = fc.record({
  type: fc.constant("server" as const),
  cluster: fc.constantFrom("1", "1", "1", "2"),
  startedAt: fc.constantFrom("08:00", "09:00", "10:00"),
  isPrimary: fc.boolean(),
});
const silent = fc.constantFrom(
  { type: "silent" as const, error: storeUnavailable("away") },
  { type: "silent" as const, error: new IdmintError("STORE_REFUSED", "no such user") },
);
const looksOf = fc
  .array(fc.oneof(server, silent), { minLength: 1, maxLength: 4 })
  .map((all): Look[] => all.map((look, at) => ({ ...look, address: `host${at}:5432` })));

test("a host is used only when it takes writes, and no other host that answers does or is of another cluster", () => {
  fc.assert(
    fc.property(looksOf, (looks) => {
      const choice = choosePrimary(looks);
      const servers = looks.filter((look) => look.type === "server");
      const primaries = servers.filter(({ isPrimary }) => isPrimary);
      const isOneCluster = new Set(servers.map(({ cluster }) => cluster)).size === 1;
      if (primaries.length === 1 && isOneCluster) {
        expect(choice).toEqual({ type: "primary", at: looks.indexOf(primaries[0] as Look) });
        return;
      }
      expect(choice.type).toBe("refused");
      if (choice.type !== "refused") return;
      const { reason, message } = choice.error;
      if (servers.length === 0) return;
      // What passes by itself is worth another try; what somebody has to correct is not.
      expect(reason).toBe(
        isOneCluster && primaries.length === 0 ? "STORE_UNAVAILABLE" : "STORE_REFUSED",
      );
      expect(message).toMatch(/\bURL\b/);
    }),
    { numRuns: 2_000 },
  );
});

function at(address: string, more: Partial<Server> = {}): Server {
  return { type: "server", address, cluster: "1", startedAt: address, isPrimary: false, ...more };
}

function textOf(...looks: Look[]): string {
  const choice = choosePrimary(looks);
  return choice.type === "refused" ? choice.error.message : "";
}

test("each refusal names the hosts and the way out", () => {
  const away: Look = { type: "silent", address: "c:3", error: storeUnavailable("away") };
  expect(textOf(at("a:1", { isPrimary: true }), at("b:2", { isPrimary: true }))).toBe(
    "STORE_REFUSED: a:1 and b:2 of one URL are both primaries; stop the old one, so that nothing is granted by both",
  );
  const twice = { isPrimary: true, startedAt: "now" };
  expect(textOf(at("a:1", twice), at("b:2", twice))).toContain("are one server; name it once");
  expect(textOf(at("a:1", { isPrimary: true }), at("b:2", { cluster: "2" }))).toContain(
    "two clusters: a:1 is of 1, b:2 of 2",
  );
  expect(textOf(at("a:1"), away)).toContain(
    "a:1 is a standby, or takes no writes; c:3 does not answer; promote one",
  );
  expect(textOf(away)).toBe("STORE_UNAVAILABLE: away");
});
