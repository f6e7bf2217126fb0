// The tokens of callers.
import { KEPT_EXPIRED_MS, type Token } from "@idmint/core/server";
import { expect } from "vitest";
import type { Suite } from "./support.ts";

const HOUR_MS = 3_600_000;

export function tokenOf(id: string, more: Partial<Token> = {}): Token {
  return {
    id,
    principal: "orders",
    rights: [
      { role: "issue", tags: "orders.*" },
      { role: "observe", tags: "*" },
    ],
    hash: "0".repeat(64),
    createdAtMs: Date.now(),
    expiresAtMs: Date.now() + HOUR_MS,
    ...more,
  };
}

export function tokenCases(suite: Suite): void {
  suite(
    "tokens are read whole by every server, and again only when one changed",
    async (store, open) => {
      const other = await open();
      const none = await other.readTokens(undefined);
      expect(none.tokens).toEqual([]);
      expect(await other.readTokens(none.version)).toEqual({ ...none, tokens: undefined });
      const [a, b] = [tokenOf("aa"), tokenOf("bb", { principal: 'o"ps', rights: [] })];
      expect(await store.addToken(b)).toBe(true);
      expect(await store.addToken(a)).toBe(true);
      const two = await other.readTokens(none.version);
      expect(two.tokens).toEqual([a, b]);
      const unchanged = [store.addToken(tokenOf("bb")), store.removeToken("cc")];
      expect(await Promise.all(unchanged)).toEqual([false, false]);
      expect(await other.readTokens(two.version)).toEqual({ ...two, tokens: undefined });
      expect(await other.removeToken("aa")).toBe(true);
      expect(await other.removeToken("aa")).toBe(false);
      expect((await store.readTokens(two.version)).tokens).toEqual([b]);
      expect((await store.readTokens(none.version)).tokens).toEqual([b]);
    },
  );

  suite("a token is added once, whoever adds others at the same time", async (first, open) => {
    const handles = [first, await open(), await open()];
    const ids = Array.from({ length: 12 }, (_, at) => `t${String(at).padStart(2, "0")}`);
    await Promise.all(ids.map((id, at) => handles[at % 3]!.addToken(tokenOf(id))));
    expect(await first.addToken(tokenOf("t00", { principal: "somebody else" }))).toBe(false);
    const { tokens } = await first.readTokens(undefined);
    expect(tokens?.map(({ id }) => id)).toEqual(ids);
    expect(new Set(tokens?.map(({ principal }) => principal))).toEqual(new Set(["orders"]));
  });

  suite("a token that expired long ago makes room, a later one is kept", async (store) => {
    const long = tokenOf("long", { expiresAtMs: Date.now() - KEPT_EXPIRED_MS - HOUR_MS });
    const lately = tokenOf("lately", { expiresAtMs: Date.now() - HOUR_MS });
    for (const token of [long, lately, tokenOf("new")]) await store.addToken(token);
    const { tokens } = await store.readTokens(undefined);
    expect(tokens?.map(({ id }) => id)).toEqual(["lately", "new"]);
  });

  suite("tokens change neither revision nor version of anything", async (store) => {
    const query = { since: 0n, watched: [], limit: 10 };
    const before = await store.changes(query);
    await store.addToken(tokenOf("aa"));
    await store.removeToken("aa");
    const { nowMs: _, ...after } = await store.changes(query);
    expect(before).toMatchObject(after);
  });

  suite("tokens outlive an accept of the store", async (store) => {
    await store.addToken(tokenOf("aa"));
    await store.accept(1n);
    expect((await store.readTokens(undefined)).tokens).toHaveLength(1);
  });
}
