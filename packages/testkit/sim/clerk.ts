import { IdmintError } from "@idmint/core";
import {
  DecodeIdRequest,
  DecodeIdResponse,
  ForgetNodeRequest,
  ForgetNodeResponse,
  GetAccessRequest,
  GetAccessResponse,
  GetIssuingRequest,
  GetIssuingResponse,
  GetNodeStatusRequest,
  GetNodeStatusResponse,
  GetTagCapacityRequest,
  GetTagCapacityResponse,
  GetTagEffectRequest,
  GetTagEffectResponse,
  GetTagRequest,
  GetTagResponse,
  ListAuditEventsRequest,
  ListAuditEventsResponse,
  ListFiguresRequest,
  ListFiguresResponse,
  ListLedgerEntriesRequest,
  ListLedgerEntriesResponse,
  ListPeriodsRequest,
  ListPeriodsResponse,
  ListTagsRequest,
  ListTagsResponse,
  ListTokensRequest,
  ListTokensResponse,
  ListWorkersRequest,
  ListWorkersResponse,
  LookupIdRequest,
  LookupIdResponse,
  ReturnToPeriodRequest,
  ReturnToPeriodResponse,
  SetNodeWeightRequest,
  SetNodeWeightResponse,
} from "@idmint/proto";
import type { Held } from "./check/checker.ts";
import type { Fleet } from "./fleet.ts";
import { callOnce, method, type Method } from "./nodes/transport.ts";
import { Dice } from "./world/random.ts";
import type { World } from "./world/world.ts";

const EVERY_MS = 1_200;
const DEADLINE_MS = 3_000;
const LATE_MS = 250;
/** Refusals that would tell of a fault of idmint's own. */
const BROKEN: ReadonlySet<string> = new Set([
  "INTERNAL",
  "MALFORMED_REQUEST",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
]);

/** What a look is made of: the tag and an id of it that somebody got, and a row of a server. */
interface About {
  readonly tag: string;
  readonly held: Held | undefined;
  readonly nodeId: string;
  /** Of a process that is gone for good; undefined: there is none. */
  readonly deadNodeId: string | undefined;
  readonly dice: Dice;
}

interface Look {
  readonly path: string;
  /** Undefined: there is nothing to ask for now. */
  ask(clerk: Asking, about: About): Promise<unknown> | undefined;
}

type Asking = <Request, Response>(
  its: Method<Request, Response>,
  request: Request,
) => Promise<Response>;

function look<Request, Response>(
  name: string,
  request: Method<Request, Response>["request"] & { fromPartial(from: object): Request },
  response: Method<Request, Response>["response"],
  of: (about: About) => object | undefined,
  judge?: (answer: Response, about: About) => void,
): Look {
  const its = method(`/idmint.v1.${name}`, request, response);
  return {
    path: its.path,
    ask: (asking, about) => {
      const asked = of(about);
      if (asked === undefined) return undefined;
      return asking(its, request.fromPartial(asked)).then((answer) => judge?.(answer, about));
    },
  };
}

const tag = ({ tag: name }: About): object => ({ name });
const page = ({ dice }: About): object => ({ pageSize: dice.int(1, 20) });

const LOOKS_AT_SERVERS: readonly Look[] = [
  look("WorkerService/ListWorkers", ListWorkersRequest, ListWorkersResponse, () => ({
    tag: "snowflake",
  })),
  look("NodeService/GetNodeStatus", GetNodeStatusRequest, GetNodeStatusResponse, () => ({})),
  look("NodeService/GetIssuing", GetIssuingRequest, GetIssuingResponse, () => ({})),
  look("NodeService/ListFigures", ListFiguresRequest, ListFiguresResponse, ({ dice }) => ({
    seconds: dice.int(1, 60),
  })),
  look(
    "NodeService/SetNodeWeight",
    SetNodeWeightRequest,
    SetNodeWeightResponse,
    ({ nodeId, dice }) => ({
      node: nodeId,
      weight: dice.int(0, 200),
    }),
  ),
  // One that only cannot be heard is not gone for good.
  look("NodeService/ForgetNode", ForgetNodeRequest, ForgetNodeResponse, ({ deadNodeId: nodeId }) =>
    nodeId === undefined ? undefined : { nodeId },
  ),
  look("AccessService/GetAccess", GetAccessRequest, GetAccessResponse, () => ({})),
  look("AccessService/ListTokens", ListTokensRequest, ListTokensResponse, page),
  look("AuditService/ListAuditEvents", ListAuditEventsRequest, ListAuditEventsResponse, page),
];

/** All that an operator looks at, and the small changes that end nothing. */
function looksOf(judgeHolder: (answer: LookupIdResponse, held: Held) => void): readonly Look[] {
  return [
    look("TagService/GetTag", GetTagRequest, GetTagResponse, tag),
    look("TagService/ListTags", ListTagsRequest, ListTagsResponse, page),
    look("TagService/GetTagEffect", GetTagEffectRequest, GetTagEffectResponse, tag),
    look("TagService/GetTagCapacity", GetTagCapacityRequest, GetTagCapacityResponse, tag),
    look("TagService/ListPeriods", ListPeriodsRequest, ListPeriodsResponse, () => ({
      name: "daily",
    })),
    look(
      "TagService/ListLedgerEntries",
      ListLedgerEntriesRequest,
      ListLedgerEntriesResponse,
      (about) => ({
        tag: about.tag,
        ...page(about),
      }),
    ),
    look(
      "TagService/LookupId",
      LookupIdRequest,
      LookupIdResponse,
      ({ held }) => valueOf(held),
      (answer, { held }) => {
        if (held !== undefined) judgeHolder(answer, held);
      },
    ),
    look("IdService/DecodeId", DecodeIdRequest, DecodeIdResponse, ({ held }) => valueOf(held)),
    look("TagService/ReturnToPeriod", ReturnToPeriodRequest, ReturnToPeriodResponse, () => ({
      name: "daily",
      period: "2027-01-01",
      validateOnly: true,
    })),
    ...LOOKS_AT_SERVERS,
  ];
}

function valueOf(held: Held | undefined): object | undefined {
  if (held === undefined) return undefined;
  return { tag: held.tag, value: { $case: "id", value: held.id } };
}

/** Somebody who looks at everything, on any server, while everything goes wrong. */
export class Clerk {
  readonly #fleet: Fleet;
  readonly #world: World;
  readonly #dice: Dice;
  readonly #looks: readonly Look[];
  #next: number;
  #isOver = false;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#world = fleet.world("clerk");
    this.#dice = new Dice(`${fleet.plan.seed}/clerk`);
    this.#looks = looksOf((answer, held) => fleet.checker.holder(answer, held));
    this.#next = this.#dice.int(0, this.#looks.length - 1);
    this.#later();
  }

  stop(): void {
    this.#isOver = true;
  }

  #later(): void {
    this.#world.after(this.#dice.about(EVERY_MS), () => {
      if (this.#isOver) return;
      void this.#look().then(() => this.#later());
    });
  }

  async #look(): Promise<void> {
    const { plan, checker, site, servers, trace } = this.#fleet;
    const dice = this.#dice;
    const rows = [...site.database.nodes.keys()];
    const nodeId = rows.length > 0 ? dice.pick(rows) : "";
    const about = {
      tag: dice.pick(plan.tags).name,
      held: checker.heldBySomebody(dice),
      nodeId,
      deadNodeId: rows.find((row) => !servers.some(({ id }) => id === row)),
      dice,
    };
    const its = this.#looks[this.#next++ % this.#looks.length];
    const startedAt = this.#world.now();
    try {
      await its?.ask((asked, request) => this.#ask(asked, request), about);
    } catch (thrown) {
      const { reason } = IdmintError.from(thrown);
      trace.note(this.#world.name, `${its?.path}: ${reason}`);
      if (BROKEN.has(reason)) checker.violate(`${its?.path}: ${String(thrown)}`);
    }
    const tookMs = this.#world.now() - startedAt;
    if (tookMs > DEADLINE_MS + LATE_MS)
      checker.violate(`${its?.path} took ${tookMs.toFixed(0)} ms, not ${DEADLINE_MS}`);
  }

  #ask<Request, Response>(its: Method<Request, Response>, request: Request): Promise<Response> {
    const { addresses } = this.#fleet;
    const caller = this.#fleet.caller(this.#world);
    return callOnce(caller, this.#dice.pick(addresses), its, request, DEADLINE_MS);
  }
}
