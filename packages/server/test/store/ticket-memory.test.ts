import { MemoryTicketDatabase } from "@idmint/testkit";
import { ticketSuite } from "./ticket-suite.ts";

ticketSuite(async () => {
  const database = new MemoryTicketDatabase("a");
  return {
    database,
    restart: async () => {
      database.stop();
      database.start();
    },
    close: async () => undefined,
  };
});
