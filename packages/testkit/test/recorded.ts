import { until } from "../src/fleet/until.ts";
import type { TestPostgres } from "../src/postgres.ts";

const LONG = { withinMs: 60_000, everyMs: 100 };
/** The first may have begun before, the next finds the record, and the one after that is confirmed. */
const POLLS = 3n;

/** Waits until the standby is recorded, and every server, all of which run, knows itself to be a witness. */
export async function recorded(primary: TestPostgres): Promise<void> {
  await until(
    "the standby is recorded",
    async () => {
      const [row] = await primary.query("SELECT standbys FROM idmint.store");
      return row?.["standbys"] !== "";
    },
    LONG,
  );
  const polls = async (): Promise<ReadonlyMap<unknown, bigint>> => {
    const rows = await primary.query("SELECT id, renewals FROM idmint.node");
    return new Map(rows.map(({ id, renewals }) => [id, BigInt(String(renewals))]));
  };
  const first = await polls();
  await until(
    "the servers have polled",
    async () => {
      const present = await polls();
      return [...first].every(([id, count]) => (present.get(id) ?? 0n) >= count + POLLS);
    },
    LONG,
  );
}
