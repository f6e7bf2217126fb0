import {
  type AccessFile,
  bearerOf,
  certified,
  createKnownState,
  fileRead,
  judgeToken,
  keptFound,
  keptOf,
  listRead,
  principalsKnown,
  provesSomebody,
  Rights,
  type Token,
  tokenText,
} from "@idmint/core/server";
import { expect, test } from "vitest";

const ID = "0123456789abcdef";
const token = (more: Partial<Token> = {}): Token => ({
  id: ID,
  principal: "orders",
  rights: [{ role: "issue", tags: "*" }],
  hash: "00".repeat(32),
  createdAtMs: 0,
  expiresAtMs: 1_000_000,
  ...more,
});
const clockAt = (now: number) => ({ now: () => now });
const at = (now: number, wallMs = 0): { now: number; wallMs: number } => ({ now, wallMs });
const file = (more: Partial<AccessFile>): AccessFile => ({ tokens: [], certificates: [], ...more });

const principal = (name: string, ...names: string[]): AccessFile["certificates"][number] => ({
  principal: name,
  rights: [],
  names,
});

test("before the store answered nobody knows whether there are principals", () => {
  const state = createKnownState();
  expect(principalsKnown(state, clockAt(0))).toBe("unknown");
  expect(judgeToken(state, ID, at(0))).toBe("unknown");
  listRead(state, { version: "", tokens: [] }, 0, 1_000);
  expect(principalsKnown(state, clockAt(0))).toBe("none");
  expect(judgeToken(state, ID, at(0))).toBe("invalid");
});

test("what an earlier run kept is believed as long as that run would have believed it, and asked for anew", () => {
  const first = createKnownState();
  expect(keptOf(first)).toBeUndefined();
  listRead(first, { version: "a", tokens: [token()] }, 100, 1_000);
  const kept = keptOf(first);
  expect(kept).toEqual({ tokens: [token()], believedUntil: 1_100 });
  const next = createKnownState();
  if (kept !== undefined) keptFound(next, kept);
  expect(next.version).toBeUndefined();
  expect(keptOf(next)).toEqual(kept);
  expect(judgeToken(next, ID, at(1_100))).toMatchObject({ principal: { name: "orders" } });
  expect(judgeToken(next, ID, at(1_101))).toBe("unknown");
  expect(principalsKnown(next, clockAt(1_101))).toBe("some");
  expect([1_100, 1_101].map((now) => provesSomebody(next, clockAt(now)))).toEqual([true, false]);
});

test("that there were no principals is believed of an earlier run only as long as its list is", () => {
  const state = createKnownState();
  keptFound(state, { tokens: [], believedUntil: 1_100 });
  const known = [1_100, 1_101].map((now) => principalsKnown(state, clockAt(now)));
  expect(known).toEqual(["none", "unknown"]);
  fileRead(state, file({ tokens: [token()] }));
  expect(provesSomebody(state, clockAt(1_101))).toBe(true);
  fileRead(state, file({ certificates: [principal("a", "x")] }));
  expect(provesSomebody(state, clockAt(1_101))).toBe(true);
});

test("a list is believed for max_offline after it was asked for, and a new look makes it last", () => {
  const state = createKnownState();
  expect(listRead(state, { version: "a", tokens: [token()] }, 100, 1_000)).toBe(true);
  expect(judgeToken(state, ID, at(1_100))).toMatchObject({ principal: { name: "orders" } });
  expect(judgeToken(state, ID, at(1_101))).toBe("unknown");
  expect(judgeToken(state, "ffffffffffffffff", at(1_101))).toBe("unknown");
  expect(listRead(state, { version: "a", tokens: undefined }, 900, 1_000)).toBe(false);
  expect(judgeToken(state, ID, at(1_900))).toMatchObject({ isOfStore: true });
  listRead(state, { version: "b", tokens: [] }, 1_500, undefined);
  expect(judgeToken(state, ID, at(1e12))).toBe("invalid");
  // That there were none is still known when the list is old.
  expect(principalsKnown(state, clockAt(0))).toBe("none");
});

test("a token ends at its time", () => {
  const state = createKnownState();
  listRead(state, { version: "a", tokens: [token()] }, 0, undefined);
  expect(judgeToken(state, ID, at(0, 999_999))).toMatchObject({ expiresAtMs: 1_000_000 });
  expect(judgeToken(state, ID, at(0, 1_000_000))).toBe("invalid");
});

test("what a file says is known without the store, and stands over it", () => {
  const state = createKnownState();
  fileRead(state, file({ tokens: [token({ principal: "of-file" })] }));
  expect(principalsKnown(state, clockAt(0))).toBe("some");
  listRead(state, { version: "a", tokens: [token()] }, 0, 10);
  expect(judgeToken(state, ID, at(1e9))).toMatchObject({ principal: { name: "of-file" } });
  fileRead(state, file({}));
  expect(judgeToken(state, ID, at(1e9))).toBe("unknown");
});

test("whoever is proved has the rights that the list or the file says, and how it was proved", () => {
  const state = createKnownState();
  listRead(state, { version: "a", tokens: [token()] }, 0, undefined);
  fileRead(state, file({ tokens: [token({ id: "f".repeat(16), principal: "of-file" })] }));
  const own = judgeToken(state, ID, at(0));
  expect(own).toMatchObject({
    hash: "00".repeat(32),
    isOfStore: true,
    principal: { name: "orders", proof: "token", tokenId: ID },
  });
  expect(judgeToken(state, "f".repeat(16), at(0))).toMatchObject({ isOfStore: false });
  const list = (own as { principal: { rights: { list: unknown } } }).principal.rights.list;
  expect(list).toEqual([{ role: "issue", tags: "*" }]);
});

test("each kind of principal is one, and one that somebody could be proved as", () => {
  const later = clockAt(1_000_000);
  const knows = (change: (state: ReturnType<typeof createKnownState>) => void) => {
    const state = createKnownState();
    change(state);
    return [principalsKnown(state, later), provesSomebody(state, later)];
  };
  expect(knows(() => undefined)).toEqual(["unknown", false]);
  expect(knows((state) => fileRead(state, file({ tokens: [token()] })))).toEqual(["some", true]);
  const certificates = [principal("a", "x")];
  expect(knows((state) => fileRead(state, file({ certificates })))).toEqual(["some", true]);
  const caller = { name: "t", proof: "token", tokenId: "", rights: new Rights([]) } as const;
  expect(knows((state) => (state.tinyid = new Map([["h", caller]])))).toEqual(["some", true]);
  // An old list still says that there are some, and proves nobody.
  const list = { version: "a", tokens: [token()] };
  expect(knows((state) => listRead(state, list, 0, 1_000))).toEqual(["some", false]);
});

test("a list of this run says for good that there were no principals", () => {
  const state = createKnownState();
  listRead(state, { version: "a", tokens: undefined }, 0, 1_000);
  // Nothing was listed yet: the version is what says it.
  expect([1_000, 1_001].map((now) => principalsKnown(state, clockAt(now)))).toEqual([
    "none",
    "unknown",
  ]);
  listRead(state, { version: "a", tokens: [] }, 0, 1_000);
  expect(principalsKnown(state, clockAt(1_001))).toBe("none");
  expect(state.version).toBe("a");
});

test("a certificate of two principals proves neither", () => {
  const state = createKnownState();
  fileRead(state, file({ certificates: [principal("a", "x", "y"), principal("b", "z")] }));
  expect(certified(state, ["n", "x", "y"])).toMatchObject({ name: "a", proof: "certificate" });
  expect(certified(state, ["x", "z"])).toBeUndefined();
  expect(certified(state, ["n"])).toBeUndefined();
});

test("only a whole token in a bearer header is one", () => {
  const parts = { id: ID, secret: "s".repeat(43) };
  const text = tokenText(parts);
  expect(bearerOf(`Bearer ${text}`)).toEqual(parts);
  expect(bearerOf(`bearer  ${text}`)).toEqual(parts);
  for (const wrong of [
    text,
    `Basic ${text}`,
    `Bearer ${text}x`,
    `Bearer ${text} ${text}`,
    "Bearer",
  ]) {
    expect(bearerOf(wrong), wrong).toBeUndefined();
  }
});
