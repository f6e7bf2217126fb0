import {
  type CallAnswers,
  type CallArgs,
  MAX_BATCH,
  type Store,
  type StoreCall,
  storeCalls,
  type Tag,
} from "@idmint/core/server";
import type { PostgresConfig } from "../shared/config.ts";
import { workableVersion } from "../shared/migration.ts";
import { passingPins, type StorePins } from "../pins/pin.ts";
import { assertMembership, FIRST_DATABASE, type PlacedTag } from "../shared/placed-tag.ts";
import * as accept from "./accept.ts";
import * as audit from "./records/audit.ts";
import * as changes from "./changes.ts";
import * as claims from "./records/claims.ts";
import { Connections } from "./connections.ts";
import { findHolders, HorizonWatch } from "./faults/horizon.ts";
import { assertLogged } from "./faults/unlogged.ts";
import { Belonging } from "./hosts/belonging.ts";
import { followStandbys } from "./hosts/follow.ts";
import * as giveBack from "./give-back.ts";
import * as grant from "./grant.ts";
import {
  findMembership,
  pageOfRows,
  point,
  type Pointer,
  readStanding,
  type Standing,
} from "./membership.ts";
import * as ledger from "./records/ledger.ts";
import * as marks from "./marks.ts";
import * as nodes from "./nodes.ts";
import { migrations } from "./migrations/index.ts";
import * as periods from "./periods.ts";
import * as raise from "./raise.ts";
import { appliedMigrations } from "./schema.ts";
import { createTag, getRows, rewriteTag } from "./tags.ts";
import * as tags from "./tags.ts";
import * as tokens from "./records/tokens.ts";
import * as workerLeases from "./worker-leases.ts";

/** What each call does on a connection: the function of its name out of the files beside this one. */
const CALLS: {
  readonly [Name in StoreCall]: (
    connections: Connections,
    ...args: CallArgs[Name]
  ) => Promise<CallAnswers[Name]>;
} = {
  ...accept,
  ...audit,
  ...changes,
  askForClaims: claims.askForClaims,
  claim: claims.claim,
  hearClaims: claims.hearClaims,
  withdrawAsk: claims.withdrawAsk,
  ...giveBack,
  ...grant,
  findInLedger: ledger.findInLedger,
  listLedger: ledger.listLedger,
  recordLedger: ledger.recordLedger,
  ...marks,
  ...nodes,
  ...periods,
  ...raise,
  ...tags,
  ...tokens,
  ...workerLeases,
};

type Tail<List extends readonly unknown[]> = List extends readonly [unknown, ...infer Rest]
  ? Rest
  : never;

/** The store in one PostgreSQL database, with what a store in several needs of each of them. */
export interface PostgresStore extends Store {
  /** What the database knew of its fleet when it was opened. */
  readonly fleetId: string;
  changes(...args: CallArgs["changes"]): Promise<changes.DatabaseChanges>;
  createTag(...args: Tail<Parameters<typeof createTag>>): Promise<Tag>;
  getRows(names: readonly string[]): Promise<readonly PlacedTag[]>;
  pageOfRows(afterName: string, limit: number): Promise<readonly PlacedTag[]>;
  point(pointers: readonly Pointer[]): Promise<void>;
  /** One step of a move. */
  rewriteTag(...args: Tail<Parameters<typeof rewriteTag>>): Promise<void>;
  standing(): Promise<Standing>;
}

export async function open(
  config: PostgresConfig,
  pins: StorePins = passingPins(),
): Promise<PostgresStore> {
  const { member = "" } = config.place ?? {};
  // The place stays the same when further databases join it.
  const pin = pins.of(member === FIRST_DATABASE ? "" : member);
  const belonging = new Belonging("idmint.store", pin);
  const connections = new Connections(config, belonging);
  try {
    const schemaVersion = await connections.run(async (session) => {
      const version = workableVersion(migrations, await appliedMigrations(session));
      await assertLogged(session, "idmint");
      return version;
    });
    const { place } = connections;
    // Without a record nothing is granted or changed, and it shows that there is none.
    const membership = (await findMembership(connections)) ?? { ...place, fleetId: "" };
    assertMembership(membership, place);
    await belonging.settle();
    // Only now: an operator who gives up an unreachable standby has to be able to open the store without it.
    connections.startConfirming();
    return {
      ...storeCalls((name, args) => CALLS[name](connections, ...args)),
      backend: config.backend,
      maxBatch: MAX_BATCH,
      schemaVersion,
      fleetId: membership.fleetId,
      changes: warned(connections, followStandbys(connections)),
      createTag: (...args) => createTag(connections, ...args),
      getRows: (names) => getRows(connections, names),
      pageOfRows: (afterName, limit) => pageOfRows(connections, afterName, limit),
      point: (pointers) => point(connections, pointers),
      rewriteTag: (...args) => rewriteTag(connections, ...args),
      standing: () => readStanding(connections),
      close: () => connections.close(),
    };
  } catch (error) {
    await connections.close();
    throw error;
  }
}

type Poll = PostgresStore["changes"];

/** Polls that also tell what makes them slow. */
function warned(connections: Connections, poll: Poll): Poll {
  const horizon = new HorizonWatch(async () => {
    // A look that changes nothing waits for no standby.
    const { answer } = await connections.runUnconfirmed(findHolders, 0);
    return answer;
  });
  return async (query) => {
    const answer = await poll(query);
    const { warning } = horizon;
    return warning === "" ? answer : { ...answer, warning };
  };
}
