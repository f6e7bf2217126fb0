// What docs/regions.md says of ticket slots, typed in two regions with a PostgreSQL each.
import { TestPostgres } from "@idmint/testkit/postgres";
import { expect, onTestFinished, test } from "vitest";
import { cli, serve } from "./process.ts";
import { shell, snippets } from "./snippets.ts";

const FILE = "docs/regions.md";

test("ticket slots: one tag in both regions, which goes on when that of the store is away", async () => {
  // Durable, as a server for production must be: nothing unsafe has to be allowed.
  const eu = await TestPostgres.start({ durable: true });
  onTestFinished(() => eu.close());
  const us = await TestPostgres.start({ durable: true });
  onTestFinished(() => us.close());
  const store = (await eu.createDatabase()).url;
  const inEu = (await eu.createDatabase()).url;
  const inUs = (await us.createDatabase()).url;
  const env = { IDMINT_STORE_URL: store, IDMINT_TICKET_URLS: `eu=${inEu},us=${inUs}` };
  expect((await cli(["migrate"], { env })).exitCode).toBe(0);
  const [migrate = "", make = "", ...others] = snippets(FILE, "Ticket slots", "sh");
  expect(others).toEqual([]);
  const migrated = await shell(migrate, { env });
  expect([migrated.exitCode, migrated.err]).toEqual([0, ""]);
  const start = async (zone: string): Promise<Record<string, string>> => {
    const server = await serve(["serve"], { env: { ...env, IDMINT_NODE_ZONE: zone } });
    onTestFinished(async () => {
      await server.stop();
    });
    return { ...env, IDMINT_ADDRESS: server.grpcAddress };
  };
  const [one, two] = [await start("eu"), await start("us")];
  const made = await shell(make, { env: one });
  expect([made.exitCode, made.err]).toEqual([0, ""]);
  expect(made.out).toMatch(/^payments +30 +30 /m);
  const ids: string[] = [];
  const take = async (place: Record<string, string>, count: string): Promise<void> => {
    const args = ["id", "next", "payments", "--count", count, "--json"];
    const { exitCode, out, err } = await cli(args, { env: place });
    expect([exitCode, err]).toEqual([0, ""]);
    ids.push(...(JSON.parse(out) as { ids: string[] }).ids);
  };
  await take(one, "500");
  await take(two, "500");
  await eu.stop("kill");
  // Of several ids the command reads the tag first, which is in the store. One by one it does not.
  for (let call = 0; call < 10; call++) await take(two, "1");
  expect(new Set(ids).size).toBe(ids.length);
});
