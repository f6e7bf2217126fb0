import {
  type CallOptions,
  type ChannelCredentials,
  type Client,
  type ClientOptions,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import {
  AccessServiceClient,
  AuditServiceClient,
  HealthClient,
  IdServiceClient,
  NodeServiceClient,
  TagServiceClient,
  WorkerServiceClient,
} from "@idmint/proto/grpc-js";
import type { Command } from "commander";
import type { Io } from "../process/io.ts";
import { type ConnectionSettings, connectionSettings, isOnThisMachine } from "../flags/options.ts";
import { failureOfCall } from "./status-details.ts";
import { cliVersion } from "../process/package-version.ts";

/** A unary method of a generated client, bound to it. */
type UnaryMethod<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: Partial<CallOptions>,
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

/** The services of one server. */
interface Services {
  readonly access: AccessServiceClient;
  readonly audit: AuditServiceClient;
  readonly ids: IdServiceClient;
  readonly tags: TagServiceClient;
  readonly workers: WorkerServiceClient;
  readonly nodes: NodeServiceClient;
  readonly health: HealthClient;
}

/** Sends one call: with a deadline, once, cancelled by Ctrl-C. Rejects with CommandFailure. */
export type Send = <Request, Response>(
  pick: (services: Services) => UnaryMethod<Request, Response>,
  request: Request,
) => Promise<Response>;

/** Runs `use` with a function that calls the server that the command's flags name. Closes the connection afterwards. */
export async function withServer(
  command: Command,
  io: Io,
  use: (send: Send) => Promise<void>,
): Promise<void> {
  await withServerAt(connectionSettings(command, io.env), io, use);
}

/** Runs `use` with a function that calls one server. Closes the connection afterwards. */
export async function withServerAt<T>(
  settings: ConnectionSettings,
  io: Pick<Io, "signal">,
  use: (send: Send) => Promise<T>,
): Promise<T> {
  const services = connect(settings);
  const metadata = callMetadata(settings);
  const send: Send = (pick, request) =>
    new Promise((resolve, reject) => {
      const method = pick(services);
      const options = { deadline: Date.now() + settings.timeoutMs };
      const call = method(request, metadata, options, (error, response) => {
        io.signal.removeEventListener("abort", cancel);
        if (error === null) resolve(response);
        else reject(failureOfCall(error, { ...settings, isInterrupted: io.signal.aborted }));
      });
      const cancel = (): void => call.cancel();
      io.signal.addEventListener("abort", cancel, { once: true });
      if (io.signal.aborted) cancel();
    });
  try {
    return await use(send);
  } finally {
    for (const client of Object.values(services) as readonly Client[]) client.close();
  }
}

/** What every call carries: the token, where nobody else can read it. */
export function callMetadata(settings: ConnectionSettings): Metadata {
  const metadata = new Metadata();
  // A server that was named by another one may be on another machine.
  const isSafe = settings.tls !== undefined || isOnThisMachine(settings.address);
  if (settings.token !== undefined && isSafe) {
    metadata.set("authorization", `Bearer ${settings.token}`);
  }
  return metadata;
}

function connect(settings: ConnectionSettings): Services {
  const { address } = settings;
  const [channel, options] = channelOf(settings);
  return {
    access: new AccessServiceClient(address, channel, options),
    audit: new AuditServiceClient(address, channel, options),
    ids: new IdServiceClient(address, channel, options),
    tags: new TagServiceClient(address, channel, options),
    workers: new WorkerServiceClient(address, channel, options),
    nodes: new NodeServiceClient(address, channel, options),
    health: new HealthClient(address, channel, options),
  };
}

/** What a generated client is made with, beside the address. */
export function channelOf({
  tls,
}: Pick<ConnectionSettings, "tls">): [ChannelCredentials, ClientOptions] {
  const channel: ChannelCredentials =
    tls === undefined
      ? credentials.createInsecure()
      : credentials.createSsl(tls.caPem ?? null, tls.keyPem ?? null, tls.certPem ?? null);
  const options: ClientOptions = {
    "grpc.primary_user_agent": `idmint-cli/${cliVersion()}`,
    // A retry would be a second attempt that the exit code hides.
    "grpc.enable_retries": 0,
    // A proxy that the environment names is meant for web pages. It would answer in place of a server on this machine.
    "grpc.enable_http_proxy": 0,
  };
  return [channel, options];
}
