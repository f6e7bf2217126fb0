import type { Migration } from "../../shared/migration.ts";
import { init } from "./000001-init.ts";

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [init];
