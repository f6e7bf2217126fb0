import type { LedgerRow } from "@idmint/core/server";
import {
  type LedgerEntry,
  LedgerEntryKind,
  ListLedgerEntriesRequest,
  ListLedgerEntriesResponse,
  LookupIdRequest,
  LookupIdResponse,
  LookupResult,
} from "@idmint/proto";
import type { FoundHolder, LookupIdService } from "../service/tags/lookup-id.ts";
import { valueOf } from "./decode.ts";
import { type Handler, handlerOf, type HandlerPorts } from "./method.ts";
import { NEEDS } from "./need.ts";

const SERVICE = "idmint.v1.TagService";

const RESULTS: Readonly<Record<FoundHolder["why"], LookupResult>> = {
  ALLOCATED: LookupResult.ALLOCATED,
  GRANTED: LookupResult.GRANTED,
  RELEASED: LookupResult.RELEASED,
  GIVEN_BACK: LookupResult.GIVEN_BACK,
  LOST: LookupResult.LOST,
  FORGOTTEN: LookupResult.FORGOTTEN,
  CONTRADICTION: LookupResult.CONTRADICTION,
  UNKNOWN: LookupResult.UNKNOWN,
  NOT_GRANTED: LookupResult.NOT_GRANTED,
};

const KINDS: Readonly<Record<LedgerRow["entry"], LedgerEntryKind>> = {
  grant: LedgerEntryKind.GRANT,
  allocation: LedgerEntryKind.ALLOCATION,
  release: LedgerEntryKind.RELEASE,
  "give-back": LedgerEntryKind.GIVE_BACK,
  gap: LedgerEntryKind.GAP,
};

/** The rows about the ledger. */
export function ledgerHandlers(lookups: LookupIdService, ports: HandlerPorts): readonly Handler[] {
  return [
    handlerOf(
      SERVICE,
      {
        name: "LookupId",
        request: LookupIdRequest,
        response: LookupIdResponse,
        need: NEEDS.observe,
        about: ({ tag }) => tag,
        call: async ({ tag, value }) => {
          const { id, why, server, client } = await lookups.lookup(tag, valueOf(value));
          return { id, result: RESULTS[why], server: entryOf(server), client: entryOf(client) };
        },
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "ListLedgerEntries",
        request: ListLedgerEntriesRequest,
        response: ListLedgerEntriesResponse,
        need: NEEDS.observe,
        about: ({ tag }) => tag,
        call: async (request) => {
          const { rows, nextPageToken } = await lookups.list(request);
          return { entries: rows.map(knownEntryOf), nextPageToken };
        },
      },
      ports,
    ),
  ];
}

function entryOf(row: LedgerRow | undefined): LedgerEntry | undefined {
  return row === undefined ? undefined : knownEntryOf(row);
}

function knownEntryOf(row: LedgerRow): LedgerEntry {
  const { entry, firstId, lastId, version, epoch, nodeId, server, sequence, atMs } = row;
  const { instance, principal } = row;
  const range = { kind: KINDS[entry], firstId, lastId, version, epoch };
  return { ...range, nodeId, server, sequence, instance, principal, time: new Date(atMs) };
}
