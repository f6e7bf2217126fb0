import { RedisServer } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { cli, serve, temporaryFolder } from "./process.ts";
import { shell, snippet } from "./snippets.ts";

test("the way of docs/sequences.md to Redis works as printed", async () => {
  await using a = await RedisServer.start();
  await using b = await RedisServer.start();
  const lines = snippet("docs/sequences.md", "In Redis", "sh").trimEnd().split("\n");
  const [settings = "", ...commands] = lines;
  const urls = /^export IDMINT_REDIS_URLS=(.*)$/
    .exec(settings)?.[1]
    ?.replace("redis://redis-a.internal:6379/0", a.url)
    .replace("redis://redis-b.internal:6379/0", b.url);
  const { folder, remove } = temporaryFolder();
  const server = await serve(["start-dev"], {
    cwd: folder,
    env: { IDMINT_REDIS_URLS: urls ?? "" },
  });
  try {
    const env = { IDMINT_ADDRESS: server.grpcAddress };
    const { exitCode, out, err } = await shell(commands.join("\n"), { env });
    expect([exitCode, err]).toEqual([0, ""]);
    expect(out).toMatch(/^backend +redis\nstep +10000\nredis server +[ab]$/m);
    // The last one shows where it is now.
    expect(out.match(/^redis server +\w$/gm)?.at(-1)).toMatch(/b$/);
    const first = await cli(["id", "next", "jobs"], { env });
    expect([first.exitCode, first.err]).toEqual([0, ""]);
    const there = await cli(["tag", "move", "jobs", "--to", "a"], { env });
    expect(there.out).toMatch(/^redis server +a$/m);
    const second = await cli(["id", "next", "jobs"], { env });
    expect(BigInt(second.out)).toBeGreaterThan(BigInt(first.out));
    const nowhere = await cli(["tag", "move", "jobs", "--to", "c"], { env });
    expect([nowhere.exitCode, nowhere.err]).toEqual([
      2,
      expect.stringContaining("--to must be one"),
    ]);
    const settings60 =
      "tag create flakes --kind redis-snowflake --shard 60 --time-origin 2026-01-01";
    const flakes = await cli(settings60.split(" "), { env });
    expect(flakes.out).toMatch(
      /^shard +60\ntime origin +2026-01-01T00:00:00.000Z\nends at +2095-/m,
    );
    const ids = await cli(["id", "next", "flakes", "-n", "3"], { env });
    for (const id of ids.out.trimEnd().split("\n")) expect((BigInt(id) >> 10n) & 4_095n).toBe(60n);
  } finally {
    await server.stop();
    remove();
  }
});
