import { createHash } from "node:crypto";
import { Rights, type Token, type TokenList, tokenText } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { Access, type AccessOptions } from "../../../src/service/access/access.ts";

const SECRET = "s".repeat(43);
const ID = "0123456789abcdef";
const HEADER = `Bearer ${tokenText({ id: ID, secret: SECRET })}`;
const TOKEN: Token = {
  id: ID,
  principal: "orders",
  rights: [{ role: "issue", tags: "orders" }],
  hash: createHash("sha256").update(SECRET).digest("hex"),
  createdAtMs: 0,
  expiresAtMs: 1_000_000,
};
const WALL_MS = 900_000;
const EVERYBODY = new Rights([{ role: "issue", tags: "*" }]);

/** Callers of a server whose store answers `list`, or nothing. */
function world(list: TokenList | undefined, anonymous: AccessOptions["anonymous"] = "at-first") {
  const time = new FakeTime();
  const readTokens = async (): Promise<TokenList> => {
    if (list === undefined) throw new Error("the store is down");
    return list;
  };
  const store = { readTokens, addToken: async () => false, removeToken: async () => false };
  const ports = {
    store,
    clock: time,
    timers: time,
    wallClock: () => WALL_MS + time.now(),
    emit: () => undefined,
  };
  const access = new Access(ports, { intervalMs: 1_000, maxOfflineMs: undefined, anonymous });
  const by = (header?: string) =>
    access.identify({ authorization: () => header, certificateNames: () => [] });
  return { time, access, by };
}

const wants = { roles: 1, isBeginning: false, about: () => "orders" };

test("a token that was proved ends at its time all the same", async () => {
  const { time, access, by } = world({ version: "a", tokens: [TOKEN] });
  await access.start();
  expect(by(HEADER)).toMatchObject({ name: "orders" });
  time.advance(99_999);
  expect(by(HEADER)).toMatchObject({ name: "orders" });
  time.advance(1);
  expect(() => by(HEADER)).toThrow(/^UNAUTHENTICATED/u);
  access.stop();
});

test("nobody is let in before the first look at the store, whatever they show", async () => {
  for (const anonymous of ["at-first", "none"] as const) {
    const { access, by } = world(undefined, anonymous);
    expect(access.principals).toBe("unknown");
    expect(access.knowsCallers).toBe(false);
    expect(() => by(HEADER)).toThrow(/^STORE_UNAVAILABLE/u);
    expect(by()).toBeUndefined();
    expect(() => access.assertKnown(undefined)).toThrow(/^STORE_UNAVAILABLE/u);
    expect(() => access.authorise(undefined, wants, {})).toThrow(/^STORE_UNAVAILABLE/u);
    await access.start();
    expect(access.principals).toBe("unknown");
    expect(() => access.assertKnown(undefined)).toThrow(/^STORE_UNAVAILABLE/u);
    access.stop();
  }
});

test("where everybody may something, a token that cannot be judged yet is not taken for nothing", () => {
  const { access, by } = world(undefined, EVERYBODY);
  // Another server may know, so callers are better sent there.
  expect(access.knowsCallers).toBe(false);
  access.authorise(by(), wants, {});
  expect(() => by(HEADER)).toThrow(/^STORE_UNAVAILABLE/u);
});

test("a store without principals lets in everybody at first, and nobody where nobody may be anonymous", async () => {
  const first = world({ version: "", tokens: [] });
  await first.access.start();
  first.access.authorise(first.by("Bearer x"), wants, {});
  const none = world({ version: "", tokens: [] }, "none");
  await none.access.start();
  expect(() => none.access.authorise(none.by(), wants, {})).toThrow(/^UNAUTHENTICATED/u);
  for (const { access } of [first, none]) access.stop();
});

test("a refusal names the role that is missing, for which tags, and who can give it", async () => {
  const { access, by } = world({ version: "a", tokens: [TOKEN] });
  await access.start();
  const refused = (wanted: typeof wants) => () => access.authorise(by(HEADER), wanted, {});
  refused(wants)();
  expect(refused({ ...wants, roles: 3, about: () => "bank" })).toThrow(
    'PERMISSION_DENIED: principal "orders" lacks the role issue or observe for "bank"; whoever has the role admin for "*" can give it, by a new token (idmint token create), or it stands in access.file',
  );
  expect(refused({ roles: 4, isBeginning: true, about: () => "" })).toThrow(
    'lacks the role admin for "*"',
  );
  access.stop();
});
