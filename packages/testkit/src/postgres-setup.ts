// vitest's global set-up of the tests that need PostgreSQL: one server for the whole run.
import { sharePostgres } from "./postgres.ts";
import { sharePostgresFiles } from "./postgres-files.ts";

export default async function setup(): Promise<() => Promise<void>> {
  const removeFiles = sharePostgresFiles();
  const endServer = await sharePostgres();
  return async () => {
    await endServer();
    removeFiles();
  };
}
