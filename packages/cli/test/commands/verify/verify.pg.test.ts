// The ledger that a real server writes, and one row planted into it.
import { credentials, Metadata } from "@grpc/grpc-js";
import { loadConfig, migrateStore, startServer, storeConfigOf } from "@idmint/server";
import {
  AllocateSegmentRequest,
  type AllocateSegmentResponse,
  ReleaseSegmentRequest,
} from "@idmint/proto";
import { IdServiceClient } from "@idmint/proto/grpc-js";
import { serverEnv } from "@idmint/testkit";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { expect, test } from "vitest";
import { idmint, type CommandResult } from "../../support.ts";

const allocate = (client: IdServiceClient, instance: string): Promise<AllocateSegmentResponse> => {
  const request = AllocateSegmentRequest.create({ tag: "orders", count: 100, instance });
  return new Promise((resolve, reject) => {
    client.allocateSegment(request, new Metadata(), (error, answer) => {
      if (error === null) resolve(answer);
      else reject(error);
    });
  });
};

test("verify --ledger proves what a server wrote, and shows both rows of an id that was allocated twice", async () => {
  await using database = await createTestDatabase();
  const env = { ...serverEnv(), IDMINT_ALLOW_UNSAFE_STORE: "fsync,full_page_writes" };
  const defaults = {
    "grpc.address": "127.0.0.1:0",
    "http.address": "127.0.0.1:0",
    "log.level": "silent",
  };
  const config = loadConfig({ env, flags: { "store-url": database.url }, defaults });
  await migrateStore(storeConfigOf(config), { dryRun: false });
  const verify = (...more: string[]): Promise<CommandResult> =>
    idmint(["verify", "--ledger", "--tag", "orders", "--store-url", database.url, ...more], {
      env,
    });
  // The second server is granted what the first gave back.
  for (const name of ["first", "second"]) {
    const server = await startServer(config);
    await idmint(["tag", "create", "orders", "--address", server.grpcAddress]);
    const client = new IdServiceClient(server.grpcAddress, credentials.createInsecure());
    await allocate(client, `${name}-a`);
    const { releaseToken } = await allocate(client, `${name}-b`);
    await new Promise<void>((resolve, reject) => {
      const release = ReleaseSegmentRequest.create({
        tag: "orders",
        releaseToken,
        unusedCount: 40,
      });
      client.releaseSegment(release, new Metadata(), (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
    await allocate(client, `${name}-c`);
    client.close();
    await server.close();
  }
  const good = await verify();
  expect([good.exitCode, good.err]).toEqual([0, ""]);
  const [{ rows } = {}] = await database.query(
    "SELECT count(*) AS rows FROM idmint.ledger WHERE tag = 'orders'",
  );
  expect(Number(rows)).toBeGreaterThanOrEqual(12);
  expect(good.out).toBe(`orders: no id had two holders in ${Number(rows)} rows of the ledger\n`);

  await database.query(`INSERT INTO idmint.ledger (tag, entry, width, first_id, last_id, version, epoch, node_id,
    server, sequence, instance, principal, at_ms)
    SELECT tag, entry, 0, first_id + 5, first_id + 5, version + 100, epoch, 'twin', 'twin', 1, 'twin-app', 'mallory', at_ms
    FROM idmint.ledger WHERE instance = 'first-a'`);
  const bad = await verify();
  expect(bad.exitCode).toBe(5);
  expect(bad.out).toMatch(
    /^orders: ids 6 to 6 allocated twice\n +\S+ +1 to 100 +version .*first-a\n +twin +6 to 6 .*twin-app of principal mallory$/m,
  );
  const json = JSON.parse((await verify("--json")).out) as {
    ok: boolean;
    ledgers: { faultCount: number }[];
  };
  expect([json.ok, json.ledgers[0]?.faultCount]).toEqual([false, 1]);
  expect((await idmint(["verify", "--ledger"])).err).toContain("--ledger and --tag");
});
