// A real server and a real database, for the tests of one adapter.
import { createTestDatabase, type TestDatabase } from "@idmint/testkit/postgres";
import { SequenceKind, UuidKind } from "@idmint/proto";
import { afterAll, beforeAll } from "vitest";
import { createIdClient, type IdClient, type IdClientOptions } from "../../src/index.ts";
import { RealFleet } from "../real-fleet.ts";

export interface Stage {
  readonly fleet: RealFleet;
  readonly database: TestDatabase;
  /** Of all tests of the file. */
  readonly client: IdClient;
  clientOf(options?: Partial<IdClientOptions>): IdClient;
}

const SEQUENCE = { $case: "sequence", value: SequenceKind.create() } as const;
const UUID = { $case: "uuid", value: { ...UuidKind.create(), version: 7 } } as const;

/**
 * Once the tests run: one server with tags `orders` (ids from 1 on), `lines` (from 1,000 on), `big` (from 2^62 on), `strict`
 * (a sequence) and `names` (UUIDs).
 */
export function setStage(): Stage {
  let fleet: RealFleet;
  let database: TestDatabase;
  let client: IdClient;
  const clientOf = (options: Partial<IdClientOptions> = {}): IdClient =>
    createIdClient({ addresses: fleet.addresses, ...options });
  beforeAll(async () => {
    fleet = await RealFleet.start(1);
    await fleet.createTag("orders");
    await fleet.createTag("lines", { start: 1_000n });
    await fleet.createTag("big", { start: 2n ** 62n });
    await fleet.createTag("strict", { kind: SEQUENCE });
    await fleet.createTag("names", { kind: UUID });
    database = await createTestDatabase();
    client = clientOf();
  });
  afterAll(async () => {
    await client.close();
    await database.close();
    await fleet[Symbol.asyncDispose]();
  });
  return {
    get fleet() {
      return fleet;
    },
    get database() {
      return database;
    },
    get client() {
      return client;
    },
    clientOf,
  };
}
