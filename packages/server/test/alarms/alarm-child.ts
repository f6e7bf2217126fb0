// A whole server in one process, for tests that kill it: configured by its environment, over a store in memory.
import { MemoryStore } from "@idmint/testkit";
import { startServer } from "../../src/main/app.ts";
import { loadConfig } from "../../src/config/load.ts";

await startServer(loadConfig({ env: process.env }), { store: new MemoryStore() });
