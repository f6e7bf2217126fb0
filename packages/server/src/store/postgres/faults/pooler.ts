import type { StoreFinding } from "../../shared/status.ts";
import type { Connections, Session } from "../connections.ts";

/** Connections that are open at once, to see whether they lead to the same session. */
export const MIN_TO_FIND_POOLER = 2;
const ROUNDS = 4;
/** What was found then. */
export const POOLER: StoreFinding = {
  name: "pooler",
  isFatal: true,
  found:
    "a connection pooler lends sessions for one transaction, so servers refuse to work through it",
  fix: "put it into session mode (pool_mode = session), or name PostgreSQL itself in store.url",
};

/**
 * Whether a pooler lends sessions for one transaction or statement. One client alone is lent the same session again and again;
 * two that are open at once, and ask by turns, are lent the same one, or others from time to time.
 */
export async function isPooled(connections: Connections): Promise<boolean> {
  return connections.run((one) =>
    connections.run(async (other) => {
      const ofOne = new Set<number>();
      const ofOther = new Set<number>();
      for (let round = 0; round < ROUNDS; round++) {
        ofOne.add(await backendOf(one));
        ofOther.add(await backendOf(other));
      }
      return ofOne.size > 1 || ofOther.size > 1 || [...ofOne].some((pid) => ofOther.has(pid));
    }),
  );
}

async function backendOf(session: Session): Promise<number> {
  const [row] = await session.query<{ pid: number }>({ text: "SELECT pg_backend_pid() AS pid" });
  return row?.pid ?? 0;
}
