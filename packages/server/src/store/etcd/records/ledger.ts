import { IdmintError } from "@idmint/core";
import type { CallAnswers } from "@idmint/core/server";

/**
 * An etcd keeps no ledger: it holds everything in memory, and every write in its history until that is compacted. Servers
 * are not configured with one there.
 */
function noLedger(): Promise<never> {
  const text = "a store in etcd keeps no ledger: etcd holds all of its data in memory";
  return Promise.reject(new IdmintError("NOT_CONFIGURED", text));
}

export const findInLedger = (): Promise<CallAnswers["findInLedger"]> => noLedger();
export const listLedger = (): Promise<CallAnswers["listLedger"]> => noLedger();
export const recordLedger = (): Promise<CallAnswers["recordLedger"]> => noLedger();
