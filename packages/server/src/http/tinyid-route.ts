import { IdmintError } from "@idmint/core";
import type { Principal } from "@idmint/core/server";
import {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdRequest,
  GenerateIdResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
} from "@idmint/proto";
import { HttpCallContext } from "./call-context.ts";
import { formOf } from "./form.ts";
import type { DropInPorts } from "./leaf-route.ts";
import type { HttpAnswer, HttpRequest, Route } from "./route.ts";
import {
  authorizationOf,
  inTinyidWords,
  tinyidAsked,
  type TinyidAsked,
  tinyidBadNumber,
  tinyidFailure,
  tinyidIds,
  type TinyidPath,
  isTinyidPath,
  tinyidPathOf,
  tinyidSegment,
  tinyidSegmentAnswer,
} from "./tinyid.ts";

/** Clients of Tinyid give up after 5 s, and would not hear why. */
const TIMEOUT_MS = 4_500;

/** Tinyid's paths, for its clients as they are. */
export function tinyidRoute(ports: DropInPorts): Route {
  return {
    matches: isTinyidPath,
    methods: "any",
    answer: (request) => answer(ports, request),
  };
}

/**
 * Shows the token of the URL, which goes nowhere else: neither logs nor traces have URLs. It is one of Tinyid's own, or one of
 * idmint's as the header that shows it elsewhere.
 */
class TinyidContext extends HttpCallContext {
  readonly #token: string;
  readonly #access: DropInPorts["access"];

  constructor(request: HttpRequest, { calls, access }: DropInPorts, token: string) {
    super(request, calls.ports, TIMEOUT_MS);
    this.#token = token;
    this.#access = access;
  }

  override get principal(): Principal | undefined {
    const isAlone = super.authorization() === undefined;
    return (isAlone ? this.#access.ofTinyidToken(this.#token) : undefined) ?? super.principal;
  }

  override authorization(): string | undefined {
    const token = this.#access.saysNothing(this.#token) ? "" : this.#token;
    return authorizationOf(super.authorization(), token);
  }
}

async function answer(ports: DropInPorts, request: HttpRequest): Promise<HttpAnswer> {
  const path = tinyidPathOf(request.path);
  if (path === undefined) throw new Error("another route's path");
  try {
    const asked = tinyidAsked(formOf(request.query));
    if (asked === undefined) return tinyidBadNumber(request.path, ports.wallClock());
    return await answered(ports, request, path, asked);
  } catch (thrown) {
    return tinyidFailure(path.isSimple, inTinyidWords(IdmintError.from(thrown)));
  }
}

/** Throws why there is no answer. */
async function answered(
  ports: DropInPorts,
  request: HttpRequest,
  { asks, isSimple }: TinyidPath,
  asked: TinyidAsked,
): Promise<HttpAnswer> {
  const { handlers, calls } = ports;
  const { tag, token, count } = asked;
  const context = new TinyidContext(request, ports, token);
  const call = async (
    handler: typeof handlers.one,
    bytes: () => Uint8Array,
  ): Promise<Uint8Array> => {
    const outcome = await calls.call(handler, request, context, bytes);
    if (outcome.refusal !== undefined) throw outcome.error;
    return outcome.answer;
  };
  if (asks === "segment") {
    const instance = `tinyid/${context.caller}`;
    const bytes = await call(handlers.segment, () =>
      AllocateSegmentRequest.encode({ tag, count: 0, after: 0n, instance }).finish(),
    );
    const [segment] = AllocateSegmentResponse.decode(bytes).segments;
    if (segment === undefined) throw new Error("an answer without a segment");
    return tinyidSegmentAnswer(isSimple, tinyidSegment(segment));
  }
  if (count === 1) {
    const bytes = await call(handlers.one, () =>
      GenerateIdRequest.encode({ tag, name: "" }).finish(),
    );
    return tinyidIds(isSimple, [GenerateIdResponse.decode(bytes).id]);
  }
  const bytes = await call(handlers.many, () =>
    GenerateIdsRequest.encode({ tag, count, asList: true }).finish(),
  );
  return tinyidIds(isSimple, GenerateIdsResponse.decode(bytes).ids);
}
