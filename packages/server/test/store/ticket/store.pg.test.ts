import { TestPostgres } from "@idmint/testkit/postgres";
import { afterAll, beforeAll } from "vitest";
import {
  migrate,
  openTicketDatabases,
  type TicketConfig,
} from "../../../src/store/ticket/backend.ts";
import { ticketSuite } from "./suite.ts";

let server: TestPostgres;

beforeAll(async () => {
  server = await TestPostgres.start();
});

afterAll(async () => {
  await server.close();
});

async function configOf(name: string): Promise<TicketConfig> {
  const { url } = await server.createDatabase();
  const allowUnsafe = ["fsync", "full_page_writes"];
  const config: TicketConfig = { backend: "postgres", name, url, allowUnsafe };
  await migrate(config, { dryRun: false });
  return config;
}

ticketSuite(async () => {
  const [database] = openTicketDatabases([await configOf("a")]);
  if (database === undefined) throw new Error("one config, one database");
  return {
    database,
    restart: async () => {
      await server.stop("fast");
      await server.start();
    },
    close: () => database.close(),
  };
});
