import { readFileSync } from "node:fs";
import path from "node:path";
import { RedisServer } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { createElection, createLocks } from "../src/index.ts";

const docs = path.resolve(import.meta.dirname, "../README.md");

test("locks and elections need no more permissions than the documentation says", async () => {
  const text = readFileSync(docs, "utf8");
  const permissions = /`(\+eval [^`]+)`/.exec(text)?.[1]?.split(" ") ?? [];
  expect(permissions.length).toBeGreaterThan(5);
  await using server = await RedisServer.start();
  await server.command("ACL", "SETUSER", "worker", "on", ">pw", "resetkeys", "~idmint:*", "-@all");
  await server.command("ACL", "SETUSER", "worker", ...permissions);
  const url = server.url.replace("//", "//worker:pw@");
  await using locks = createLocks({ nodes: url });
  await locks.lock("l").run(async (grant) => grant.extend());
  await using election = createElection({ node: url, name: "e", ttlMs: 200 });
  await using leadership = await election.campaign();
  await leadership.verify();
  await leadership.resign();
  await using other = createLocks({ nodes: url, prefix: "other" });
  await expect(other.lock("l").acquire()).rejects.toThrow("NODE_REFUSED");
});
