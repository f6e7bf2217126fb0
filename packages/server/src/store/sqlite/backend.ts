import type { SqliteConfig } from "../shared/config.ts";
import { SqliteStore } from "./store.ts";

export { migrate } from "./migrate.ts";
export { status } from "./status.ts";

export function open(config: SqliteConfig): Promise<SqliteStore> {
  return SqliteStore.open(config);
}
