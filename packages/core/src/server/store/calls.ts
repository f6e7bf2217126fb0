// What those who stand around a store need to know of its calls, so that none of them is written out there.
import type { Store } from "./store.ts";
import {
  assertAudit,
  assertBatch,
  assertClaims,
  assertGap,
  assertGrants,
  assertLease,
  assertLedger,
  assertMarks,
  assertNames,
  assertPage,
  assertRaise,
  assertRenewal,
  assertTraffic,
} from "./limits.ts";

/** The calls of a store: all of its methods that promise an answer. Their arguments and answers are plain data. */
export type StoreCall = Exclude<
  {
    [Name in keyof Store]-?: Required<Store>[Name] extends (...args: never) => Promise<unknown>
      ? Name
      : never;
  }[keyof Store],
  "close"
>;

export type CallArgs = { readonly [Name in StoreCall]: Parameters<Store[Name]> };
export type CallAnswers = { readonly [Name in StoreCall]: Awaited<ReturnType<Store[Name]>> };

/** A store without what it is: its calls alone. */
export type StoreCalls = {
  readonly [Name in StoreCall]: (...args: CallArgs[Name]) => Promise<CallAnswers[Name]>;
};

interface CallRow<Name extends StoreCall> {
  /**
   * `read`: changes nothing, so it may be asked again whatever became of it. `write`: after an unknown outcome it may have
   * been done, and only its caller can tell whether asking again does harm.
   */
  readonly effect: "read" | "write";
  /** Throws where the arguments break a limit of the port. */
  readonly check?: (...args: CallArgs[Name]) => void;
  /** The answer where the first argument is an empty list; nobody has to be asked for it. */
  readonly empty?: CallAnswers[Name];
}

/** One row for each call. */
export const STORE_CALLS: { readonly [Name in StoreCall]: CallRow<Name> } = {
  accept: { effect: "write", check: assertGap },
  addToken: { effect: "write" },
  advanceTag: { effect: "write" },
  askForClaims: { effect: "write" },
  changes: {
    effect: "write",
    check: ({ watched, limit }) => {
      assertNames(watched);
      assertPage(limit);
    },
  },
  claim: { effect: "write", check: assertClaims },
  createTag: { effect: "write" },
  exchangeMarks: { effect: "write", check: assertMarks },
  findInLedger: { effect: "read" },
  forgetNodes: { effect: "write", check: assertNames, empty: 0 },
  getTags: { effect: "read", check: assertNames },
  giveBack: { effect: "write", check: assertBatch, empty: [] },
  grant: { effect: "write", check: assertGrants, empty: [] },
  hearClaims: { effect: "write" },
  leaseWorker: { effect: "write", check: assertLease },
  listAudit: { effect: "read", check: ({ limit }) => assertPage(limit) },
  listLedger: { effect: "read", check: ({ limit }) => assertPage(limit) },
  listPeriods: { effect: "read", check: ({ limit }) => assertPage(limit) },
  listTags: { effect: "read", check: ({ limit }) => assertPage(limit) },
  listWorkers: { effect: "read", check: ({ limit }) => assertPage(limit) },
  raise: { effect: "write", check: assertRaise },
  readTokens: { effect: "read" },
  recentTags: { effect: "read", check: assertPage },
  recordAudit: { effect: "write", check: assertAudit },
  recordLedger: { effect: "write", check: assertLedger },
  releaseWorker: { effect: "write" },
  removeToken: { effect: "write" },
  renewWorker: { effect: "write", check: assertRenewal },
  returnToPeriod: { effect: "write" },
  setIssuing: { effect: "write" },
  setTagState: { effect: "write" },
  setTraffic: { effect: "write", check: assertTraffic },
  trimAudit: { effect: "write", check: ({ limit }) => assertPage(limit) },
  updateTag: { effect: "write" },
  withdrawAsk: { effect: "write" },
};

const NAMES = Object.keys(STORE_CALLS) as readonly StoreCall[];

/** Makes any call, by its name. */
export type Ask = <Name extends StoreCall>(
  name: Name,
  args: CallArgs[Name],
) => Promise<CallAnswers[Name]>;

/** All calls of a store, each of them made by `ask`. */
export function storeCalls(ask: Ask): StoreCalls {
  const calls = NAMES.map((name) => {
    const call = (...args: CallArgs[StoreCall]): Promise<unknown> => ask(name, args);
    return [name, call] as const;
  });
  return Object.fromEntries(calls) as unknown as StoreCalls;
}

/** Stands around each call of a store, and makes it by `inner[name](...args)`. */
export type StoreInterceptor = <Name extends StoreCall>(
  name: Name,
  args: CallArgs[Name],
  inner: StoreCalls,
) => Promise<CallAnswers[Name]>;

/** The same store with `intercept` around each of its calls. */
export function wrapStore(inner: Store, intercept: StoreInterceptor): Store {
  const { groupOf, listen, partsOf } = inner;
  return {
    ...storeCalls((name, args) => intercept(name, args, inner)),
    backend: inner.backend,
    maxBatch: inner.maxBatch,
    get schemaVersion() {
      return inner.schemaVersion;
    },
    ...(groupOf === undefined ? {} : { groupOf }),
    ...(partsOf === undefined ? {} : { partsOf }),
    ...(listen === undefined ? {} : { listen }),
    close: () => inner.close(),
  };
}

/** Stands around the calls of a backend: keeps from it what breaks a limit of the port, and what needs no store. */
export const checkedCall: StoreInterceptor = async (name, args, inner) => {
  const { check, empty } = STORE_CALLS[name];
  check?.(...args);
  const list = (args as readonly unknown[])[0];
  if (empty !== undefined && Array.isArray(list) && list.length === 0) return empty;
  return inner[name](...args);
};
