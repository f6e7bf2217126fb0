import { IdmintError } from "@idmint/core";
import type { CallContext } from "../service/call.ts";

/** A message's codec, as the generated code has it. */
interface Codec<T> {
  decode(bytes: Uint8Array): T;
  encode(message: T): { finish(): Uint8Array };
}

/** One row of the table of handlers. Knows nothing of the door a call came through. */
export interface Method<Request, Response> {
  readonly name: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
  /** May answer at once; whatever it throws or rejects with becomes a status. */
  readonly call: (request: Request, context: CallContext) => Response | Promise<Response>;
  /** Whether it is answered while the server drains. Default: false. */
  readonly whileDraining?: boolean;
}

/**
 * Decides whether a call is allowed, before anything of the answer shows whether things exist. Throws (or rejects with)
 * UNAUTHENTICATED or PERMISSION_DENIED.
 */
export type Authorise = (
  context: CallContext,
  path: string,
  request: unknown,
) => void | Promise<void>;

/** A row with its types gone: what a door registers. */
export interface Handler {
  /** As on the wire: `/idmint.v1.IdService/GenerateId`. */
  readonly path: string;
  /** Throws or rejects with IdmintError, or with anything unforeseen. Warm calls answer without a promise. */
  readonly handle: (bytes: Uint8Array, context: CallContext) => Uint8Array | Promise<Uint8Array>;
}

export interface HandlerPorts {
  readonly authorise: Authorise;
  readonly isDraining: () => boolean;
}

/** Makes the row's handler: gate, decode, authorise, call, encode. */
export function handlerOf<Request, Response>(
  service: string,
  method: Method<Request, Response>,
  ports: HandlerPorts,
): Handler {
  const { name, call, request: requests, response: responses, whileDraining = false } = method;
  const path = `/${service}/${name}`;
  const encode = (response: Response): Uint8Array => responses.encode(response).finish();
  const allowed = (request: Request, context: CallContext): Uint8Array | Promise<Uint8Array> => {
    const response = call(request, context);
    return response instanceof Promise ? response.then(encode) : encode(response);
  };
  return {
    path,
    handle: (bytes, context) => {
      if (!whileDraining && ports.isDraining()) throw draining();
      const request = decode(requests, bytes, path);
      const permission = ports.authorise(context, path, request);
      return permission instanceof Promise
        ? permission.then(() => allowed(request, context))
        : allowed(request, context);
    },
  };
}

/** The server stops: another one answers. */
export function draining(): IdmintError {
  return new IdmintError("DRAINING", "this server is stopping; ask another one", {
    retryAfterMs: 100,
  });
}

function decode<T>(codec: Codec<T>, bytes: Uint8Array, path: string): T {
  try {
    return codec.decode(bytes);
  } catch (cause) {
    throw new IdmintError("INVALID_ARGUMENT", `the bytes are no request of ${path}`, { cause });
  }
}
