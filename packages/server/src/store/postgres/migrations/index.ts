import type { Migration } from "../../shared/migration.ts";
import { init } from "./000001-init.ts";
import { access } from "./000002-access.ts";
import { audit } from "./000003-audit.ts";
import { ledger } from "./000004-ledger.ts";

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [init, access, audit, ledger];
