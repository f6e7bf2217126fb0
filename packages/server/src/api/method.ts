import { IdmintError } from "@idmint/core";
import type { AuditNote } from "@idmint/core/server";
import type { Status } from "@idmint/proto/rpc";
import type { Admission, Cost } from "../service/admission/admission.ts";
import type { AuditTrail } from "../service/audit/trail.ts";
import type { CallContext } from "../service/call.ts";
import type { Counters } from "../service/counters.ts";
import type { DrainCause } from "../service/drain-state.ts";
import type { Emit } from "../service/events.ts";
import { draining } from "./draining.ts";
import { type Codec, type MessageWriter, writerOf } from "./codec/codec.ts";
import { isForAdmins, type Need, type Rule, ruleOf } from "./need.ts";
import { rpcStatusOf } from "./status/status.ts";

/** One row of the table of handlers. Knows nothing of the door a call came through. */
export interface Method<Request, Response> {
  readonly name: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
  /** Who may call it. */
  readonly need: Need;
  /** The name of the tag, or the beginning of names, that the need is for. Reads the request and nothing else. */
  readonly about?: (request: Request) => string;
  /** May answer at once; whatever it throws or rejects with becomes a status. */
  readonly call: (
    request: Request,
    context: CallContext,
    /** Who calls, for what a row for administrators changes; it goes with each change. */
    by: AuditNote,
  ) => Response | Promise<Response>;
  /** Whether it is answered while the server drains. Default: false. */
  readonly whileDraining?: boolean;
  /** Of rows for administrators: it stops something, so whoever administers all tags is never refused it for a quota. */
  readonly isBrake?: boolean;
  /** How many tags a call makes, which have a quota. Default: none. */
  readonly tagsMade?: (request: Request) => number;
  /**
   * What a call takes of quotas. Undefined: the row is for operators, or keeps what callers have, and is never refused for
   * overload; of quotas only those of administrators count.
   */
  readonly cost?: (request: Request) => Cost;
}

/**
 * Decides whether a call is allowed, before anything of the answer shows whether things exist. Throws (or rejects with)
 * UNAUTHENTICATED or PERMISSION_DENIED.
 */
export type Authorise = (
  context: CallContext,
  path: string,
  request: unknown,
  rule: Rule,
) => void | Promise<void>;

/**
 * A row of the table whose calls are streams: each request on one gets exactly one answer, a refusal is one too, and
 * answers need not come in the order of the requests.
 */
export interface StreamMethod<Request, Response> {
  readonly name: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
  /** Who may send such a request. Whoever may send none, since nobody knows them, gets no stream. */
  readonly need: Need;
  /** The name of the tag, or the beginning of names, that the need is for. Reads the request and nothing else. */
  readonly about?: (request: Request) => string;
  /** A stream begins: what answers its requests. Each request may wait as long as a call of its own. */
  readonly open: (context: CallContext) => (request: Request) => Response | Promise<Response>;
  /** What a request takes of quotas; each is a call. */
  readonly cost: (request: Request) => Cost;
  /** A stream begins: what fills in what a request leaves to the ones before it. */
  readonly complete: () => (request: Request) => Request;
  readonly refusal: (request: Request, error: Status) => Response;
}

/** Answers the message between `from` and `to`. Warm ones without a promise. */
export type Answer = (bytes: Uint8Array, from: number, to: number) => Message | Promise<Message>;

/** A row of the table whose calls ask once, and are told of changes until somebody ends them. */
interface WatchMethod<Request, Response> {
  readonly name: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
  readonly need: Need;
  /** Throws what refuses the call. Answers what to do when its caller goes away. */
  readonly open: (request: Request, watcher: Watcher<Response>) => () => void;
}

/** The one who called a `WatchMethod`. */
interface Watcher<Response> {
  /** Address of its connection, with its port. */
  readonly peer: string;
  readonly send: (response: Response) => void;
  /** The call ends well; nothing follows. */
  readonly end: () => void;
}

/** A row with its types gone: what a door registers. */
export type Handler = UnaryHandler | StreamHandler | WatchHandler;

export interface UnaryHandler {
  readonly kind: "unary";
  readonly rule: Rule;
  /** As on the wire: `/idmint.v1.IdService/GenerateId`. */
  readonly path: string;
  /**
   * Answers the request between `from` and `to`. Throws or rejects with IdmintError, or with anything unforeseen. Warm calls
   * answer without a promise.
   */
  readonly answer: (
    bytes: Uint8Array,
    from: number,
    to: number,
    context: CallContext,
  ) => Message | Promise<Message>;
  /** Writes what `answer` answers. */
  readonly response: MessageWriter<Message>;
  /** Both, for doors that have the request and want the answer in bytes of their own. */
  readonly handle: (bytes: Uint8Array, context: CallContext) => Uint8Array | Promise<Uint8Array>;
}

/** An answer, with its type gone: only its row can write it. */
export interface Message {
  readonly then?: never;
}

export interface StreamHandler {
  readonly kind: "stream";
  readonly rule: Rule;
  readonly path: string;
  /**
   * What answers the messages of one stream. It throws only what ends the stream: bytes that are no request, and that the
   * server takes no calls.
   */
  readonly open: (context: CallContext) => Answer;
  /** Writes what is answered. */
  readonly response: MessageWriter<Message>;
}

export interface WatchHandler {
  readonly kind: "watch";
  readonly rule: Rule;
  readonly path: string;
  readonly open: (bytes: Uint8Array, watcher: Watcher<Uint8Array>) => () => void;
}

/** What answers tell of the server that sends them, to callers that choose their servers. */
export interface ServerTold {
  readonly nodesVersion: number;
  readonly nodeId: string;
}

export interface HandlerPorts {
  readonly authorise: Authorise;
  readonly drain: { readonly cause: DrainCause | undefined };
  readonly admission: Admission;
  readonly counters: Counters;
  readonly emit: Emit;
  readonly audit: Pick<AuditTrail, "ended" | "noteOf">;
}

/** Makes the row's handler: gate, admit, decode, authorise, charge, call, encode. */
export function handlerOf<Request, Response>(
  service: string,
  method: Method<Request, Response>,
  ports: HandlerPorts,
): UnaryHandler {
  const { name, request: requests, response: responses, whileDraining = false, cost } = method;
  const { admission, drain } = ports;
  const path = `/${service}/${name}`;
  const rule = ruleOf(method.need, method.about as Rule["about"]);
  const call =
    cost === undefined
      ? noted(method, { path, rule }, ports)
      : counted(method.call, cost, admission);
  // Apart, since whatever has a closure costs memory each time.
  const later = async (
    permission: Promise<void>,
    request: Request,
    context: CallContext,
  ): Promise<Response> => {
    await permission;
    return call(request, context);
  };
  const answer = (
    bytes: Uint8Array,
    from: number,
    to: number,
    context: CallContext,
  ): Response | Promise<Response> => {
    if (!whileDraining && drain.cause !== undefined) throw draining(drain.cause);
    const refused = cost === undefined ? undefined : admission.arrived(context);
    if (refused !== undefined) return refused;
    const request = decodeAt(requests, bytes, from, to, path);
    const permission = ports.authorise(context, path, request, rule);
    return permission instanceof Promise
      ? later(permission, request, context)
      : call(request, context);
  };
  return unaryHandler({ path, rule, answer, response: writerOf(responses) });
}

interface UnaryParts<Response> extends Pick<UnaryHandler, "path" | "rule"> {
  readonly response: MessageWriter<Response>;
  readonly answer: (...args: Parameters<UnaryHandler["answer"]>) => Response | Promise<Response>;
}

/**
 * A row that answers messages of one type.
 *
 * INVARIANT: `handle` does what `answer` does, so a row is the same at every door. Nobody makes a row in another way.
 */
export function unaryHandler<Response>({
  path,
  rule,
  answer,
  response,
}: UnaryParts<Response>): UnaryHandler {
  const encode = (message: Response): Uint8Array => response.encode(message);
  return {
    kind: "unary",
    path,
    rule,
    // Nobody but its own writer reads what it answers.
    answer: answer as UnaryHandler["answer"],
    response: response as MessageWriter<unknown>,
    handle: (bytes, context) => {
      const message = answer(bytes, 0, bytes.length, context);
      return message instanceof Promise ? message.then(encode) : encode(message);
    },
  };
}

type Call<Request, Response> = (
  request: Request,
  context: CallContext,
) => Response | Promise<Response>;

/** The note of rows that change nothing that the audit trail tells of. */
const NOBODY: AuditNote = {
  id: "",
  principal: "",
  proof: "",
  peer: "",
  method: "",
  server: "",
};

const OF_STORE: ReadonlySet<string> = new Set(["STORE_REFUSED", "STORE_UNAVAILABLE"]);

/** A call for administrators goes on with a note of who makes it. */
function noted<Request, Response>(
  { call, isBrake = false, tagsMade }: Method<Request, Response>,
  { path, rule }: { readonly path: string; readonly rule: Rule },
  { admission, audit, emit }: HandlerPorts,
): Call<Request, Response> {
  if (!isForAdmins(rule)) return (request, context) => call(request, context, NOBODY);
  return async (request, context) => {
    await admission.administers({ tagsMade: tagsMade?.(request) ?? 0, isBrake }, context);
    const by = audit.noteOf(context, path);
    try {
      return await call(request, context, by);
    } catch (thrown) {
      // Callers are told no more than that the store failed.
      const { reason } = IdmintError.from(thrown);
      if (OF_STORE.has(reason))
        emit({ type: "change-failed", method: path, error: IdmintError.from(thrown) });
      throw thrown;
    } finally {
      audit.ended(by);
    }
  };
}

/** A call that is charged to quotas, where there are any, and counts while it waits. */
function counted<Request, Response>(
  call: (request: Request, context: CallContext, by: AuditNote) => Response | Promise<Response>,
  cost: (request: Request) => Cost,
  admission: Admission,
): Call<Request, Response> {
  return (request, context) => {
    if (admission.hasQuotas) {
      return admission.charged(context, cost(request), () => call(request, context, NOBODY));
    }
    const response = call(request, context, NOBODY);
    return response instanceof Promise ? admission.waits(context, response) : response;
  };
}

/**
 * Makes the handler of a row whose calls are streams: decode, gate, admit, authorise, charge, answer, encode; for each
 * request.
 */
export function streamHandlerOf<Request, Response>(
  service: string,
  method: StreamMethod<Request, Response>,
  ports: HandlerPorts,
): StreamHandler {
  const { request: requests, response: responses, refusal } = method;
  const { drain } = ports;
  const path = `/${service}/${method.name}`;
  const rule = ruleOf(method.need, method.about as Rule["about"]);
  const refuse = (request: Request, thrown: unknown): Response =>
    refusal(request, rpcStatusOf(thrown, path, ports));
  const open = (context: CallContext): Answer => {
    const opened = method.open(context);
    const complete = method.complete();
    const counts = counted((request: Request) => opened(request), method.cost, ports.admission);
    const answer = (request: Request): Response | Promise<Response> => counts(request, context);
    const permitted = async (permission: Promise<void>, request: Request): Promise<Response> => {
      await permission;
      return answer(request);
    };
    return (bytes, from, to) => {
      // A refusal names its request, so the request is read first.
      const request = complete(decodeAt(requests, bytes, from, to, path));
      // It ends the stream, since its caller is to open another one, elsewhere.
      if (drain.cause !== undefined) throw draining(drain.cause);
      try {
        const refused = ports.admission.arrived(context);
        const permission =
          refused === undefined ? ports.authorise(context, path, request, rule) : refused;
        const response =
          permission instanceof Promise ? permitted(permission, request) : answer(request);
        if (!(response instanceof Promise)) return response as Message;
        return response.catch((thrown: unknown) => refuse(request, thrown)) as Promise<Message>;
      } catch (thrown) {
        return refuse(request, thrown) as Message;
      }
    };
  };
  return {
    kind: "stream",
    rule,
    path,
    open,
    response: writerOf(responses) as MessageWriter<unknown>,
  };
}

/** Makes the handler of a row whose calls are told of changes. Everybody may call it. */
export function watchHandlerOf<Request, Response>(
  service: string,
  method: WatchMethod<Request, Response>,
): WatchHandler {
  const path = `/${service}/${method.name}`;
  return {
    kind: "watch",
    rule: ruleOf(method.need, undefined),
    path,
    open: (bytes, { peer, send, end }) =>
      method.open(decode(method.request, bytes, path), {
        peer,
        send: (response) => send(method.response.encode(response).finish()),
        end,
      }),
  };
}

export function decode<T>(codec: Codec<T>, bytes: Uint8Array, path: string): T {
  try {
    return codec.decode(bytes);
  } catch (cause) {
    throw undecodable(path, cause);
  }
}

function decodeAt<T>(
  codec: Codec<T>,
  bytes: Uint8Array,
  from: number,
  to: number,
  path: string,
): T {
  if (codec.decodeAt === undefined) return decode(codec, bytes.subarray(from, to), path);
  try {
    return codec.decodeAt(bytes, from, to);
  } catch (cause) {
    throw undecodable(path, cause);
  }
}

function undecodable(path: string, cause: unknown): IdmintError {
  const text = `the bytes do not decode as a request of ${path}`;
  return new IdmintError("MALFORMED_REQUEST", text, { cause });
}
