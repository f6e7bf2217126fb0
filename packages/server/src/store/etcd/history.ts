// Every grant is a revision of etcd, which keeps old ones until it is told to compact.
import { IdmintError } from "@idmint/core";
import { CallFailure } from "./cluster/failure.ts";
import type { Op } from "./cluster/protocol.ts";
import type { Session } from "./session/etcd.ts";
import { fieldsOf } from "./session/rows.ts";
import { readPlainly } from "./session/sight.ts";

/** A revision that was the present one so long ago must be gone, in milliseconds. */
const KEPT_TOO_LONG_MS = 25 * 3_600_000;

/** How often a store that is in use is looked at, in milliseconds. */
const LOOK_MS = 60_000;

/** The name of the risk. */
export const AUTO_COMPACTION = "auto_compaction";

/** Writes down which revision is the present one now, to be looked for later. */
export function markHistory({ keys }: Session, revision: string, nowMs: number): Op {
  const value = Buffer.from(JSON.stringify({ revision, at_ms: String(nowMs) }));
  return { put: { key: keys.one("history"), value } };
}

/** Whether etcd forgets old revisions; `unknown` while the one that is looked for is young. */
export async function lookAtHistory(
  session: Session,
): Promise<"compacts" | "keeps all" | "unknown"> {
  const [mark] = await readPlainly(session, [{ key: session.keys.one("history") }]);
  const { revision = "0", at_ms: atMs = "0" } = mark === undefined ? {} : fieldsOf(mark.value);
  if (revision === "0") return "unknown";
  try {
    await readPlainly(session, [{ key: session.keys.one("history"), revision }]);
  } catch (error) {
    if (error instanceof CallFailure && error.kind === "compacted") return "compacts";
    throw error;
  }
  return Date.now() - Number(atMs) > KEPT_TOO_LONG_MS ? "keeps all" : "unknown";
}

/**
 * Refuses an etcd that keeps all revisions: it fills its quota sooner or later, and then takes no writes. Where it does
 * compact, the next revision to look for is written down.
 */
export async function requireCompaction(session: Session): Promise<void> {
  const trouble = await troubleOf(session);
  if (trouble === "") return;
  const metadata = { settings: AUTO_COMPACTION };
  const text = `${trouble}; --allow-unsafe-store=${AUTO_COMPACTION} takes the risk`;
  throw new IdmintError("STORE_UNSAFE", text, { metadata });
}

/** What is wrong with an etcd that is in use, in words; looks again once in LOOK_MS. A look that fails tells what was. */
export async function watchCompaction(session: Session): Promise<string> {
  const { etcd } = session;
  const now = performance.now();
  if (now < etcd.compaction.lookAt) return etcd.compaction.trouble;
  etcd.compaction.lookAt = now + LOOK_MS;
  try {
    etcd.compaction.trouble = await troubleOf(session);
  } catch (error) {
    if (!(error instanceof CallFailure || error instanceof IdmintError)) throw error;
  }
  return etcd.compaction.trouble;
}

async function troubleOf(session: Session): Promise<string> {
  const { allowUnsafe } = session.etcd.config;
  const found = await lookAtHistory(session);
  if (found === "keeps all" && !allowUnsafe.includes(AUTO_COMPACTION)) {
    return "etcd still has revisions of more than a day ago, so it will be full some day and issue nothing: start it with --auto-compaction-retention=1h, and compact it once";
  }
  if (found !== "compacts") return "";
  const { revision } = await session.etcd.transact(session.deadlineMs, [], { effect: "any" });
  await session.write([markHistory(session, revision, Date.now())]);
  return "";
}
