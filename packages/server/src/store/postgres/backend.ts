import type { PostgresConfig } from "../shared/config.ts";
import { PostgresStore } from "./store.ts";

export { migrate } from "./migrate.ts";
export { status } from "./status.ts";

export function open(config: PostgresConfig): Promise<PostgresStore> {
  return PostgresStore.open(config);
}
