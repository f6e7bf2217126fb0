// To run a server.
export { startServer } from "./main/app.ts";
export { redisPlacesOf, storeConfigOf, ticketConfigsOf } from "./main/stores.ts";
export { startServing } from "./main/serving.ts";
export { type ConfigReading, type ConfigSources, loadConfig, readConfig } from "./config/load.ts";
export type { Config } from "./config/table.ts";
export { startDev } from "./main/dev.ts";
export type { RunningServer, Serving } from "./main/running.ts";
export { runUntilSignal } from "./main/run.ts";
export { type Script, watchScript } from "./main/script.ts";
// For command lines: the flags of the table of options, and the names of stores.
export { type ConfigFlag, configFlags } from "./config/docs.ts";
export { storePlace, ticketPlace } from "./config/store-place.ts";
// To plan a tag without a server.
export { type PlannedTag, plannedTag } from "./main/planned.ts";
// To look after a store.
export { operatorNote } from "./main/instance.ts";
export {
  acceptStore,
  type AcceptReport,
  addToSpread,
  creating,
  type DatabaseStanding,
  type MigrationReport,
  migrateStore,
  moveTagTo,
  openStore,
  readSequences,
  type SequenceSeen,
  type SpreadConfig,
  spreadStatus,
  type StoreConfig,
  type StoreStatus,
  storeStatus,
} from "./store/open-store.ts";
export { adoptStore, keptStoreId } from "./store/pins/memory.ts";
export { type RedisStanding, redisStanding } from "./store/open-redis.ts";
// To look after ticket databases.
export {
  acceptTicketDatabase,
  assertTicketDatabasesApart,
  migrateTicketDatabase,
  openTicketDatabases,
  type PostgresTicketDatabase,
  type TicketConfig,
} from "./store/open-tickets.ts";
// For the first token, which nobody can ask a server for.
export { newToken, type TokenRequest, tooManyTokens } from "./service/access/new-token.ts";
