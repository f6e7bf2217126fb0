import { connect } from "node:tls";
import { type ChannelCredentials, credentials, Metadata, status } from "@grpc/grpc-js";
import { NodeServiceClient } from "@idmint/proto/grpc-js";
import type { Option } from "../config/option.ts";
import { type Config, OPTIONS } from "../config/table.ts";
import type { Address } from "../config/types.ts";
import { addressError, hostPort, type Taker, tryAddress } from "./address.ts";

/** A program that listens here answers at once, if it answers at all. */
const TIMEOUT_MS = 1_000;
/** Nothing is told to whoever answers, so it need not prove who it is. */
const ANYBODY = { rejectUnauthorized: false };
/** Longest text of another program that is shown. */
const MAX_PLACE = 300;

/**
 * Listens and answers the address. If it is taken, rejects with who has it and with the option that chooses another.
 */
export async function listen(
  door: { listen(): Promise<number> },
  option: Pick<Option<unknown>, "key">,
  address: Address,
): Promise<string> {
  try {
    return hostPort({ host: address.host, port: await door.listen() });
  } catch (error) {
    throw await fault(error, option, address);
  }
}

/** Rejects when one of a server's addresses cannot be listened on now. */
export async function assertFree(
  config: Pick<Config, "adminAddress" | "grpcAddress" | "httpAddress">,
): Promise<void> {
  for (const name of ["grpcAddress", "adminAddress", "httpAddress"] as const) {
    const address = config[name];
    if (address === undefined || address === "none" || address.port === 0) continue;
    try {
      // One after the other, so that the first one is reported when both are taken.
      await tryAddress(address);
    } catch (error) {
      throw await fault(error, OPTIONS[name], address);
    }
  }
}

async function fault(
  error: unknown,
  option: Pick<Option<unknown>, "key">,
  address: Address,
): Promise<Error> {
  const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
  const isHttp = option.key === OPTIONS.httpAddress.key;
  const ask = isHttp ? askProbes : askNode;
  const taker = isTaken ? await ask(hostPort(reachable(address))) : undefined;
  return addressError(error, option.key, address, taker);
}

/** Where to ask a program that may listen on all addresses of this machine. */
function reachable({ host, port }: Address): Address {
  if (host === "0.0.0.0") return { host: "127.0.0.1", port };
  return { host: host === "::" ? "::1" : host, port };
}

/** The idmint server behind a gRPC port; undefined when there is none, or none that answers. */
async function askNode(target: string): Promise<Taker | undefined> {
  const [answer, isSecure] = await Promise.all([
    askBy(credentials.createInsecure(), target),
    speaksTls(target),
  ]);
  if (answer !== undefined || !isSecure) return answer;
  return askBy(credentials.createSsl(null, null, null, ANYBODY), target);
}

/** Whether a TLS handshake succeeds. gRPC never gives one up, and would keep this process alive for a silent stranger. */
async function speaksTls(target: string): Promise<boolean> {
  const { hostname, port } = new URL(`tcp://${target}`);
  const host = hostname.replaceAll(/[[\]]/g, "");
  const socket = connect({ host, port: Number(port), ALPNProtocols: ["h2"], ...ANYBODY });
  try {
    return await new Promise((resolve) => {
      socket.setTimeout(TIMEOUT_MS, () => resolve(false));
      socket.once("secureConnect", () => resolve(true));
      socket.once("error", () => resolve(false));
      socket.once("close", () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}

async function askBy(by: ChannelCredentials, target: string): Promise<Taker | undefined> {
  const client = new NodeServiceClient(target, by, {
    // Whoever it is: nothing is told to it, and its certificate may be for any name.
    "grpc.ssl_target_name_override": "localhost",
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    "grpc.enable_http_proxy": 0,
  });
  try {
    return await new Promise((resolve) => {
      const options = { deadline: Date.now() + TIMEOUT_MS };
      client.getNodeStatus({}, new Metadata(), options, (error, answer) => {
        if (error === null) resolve({ store: shown(answer.store?.place ?? "") });
        // A server that wants to know its callers is one of ours, and does not tell.
        else resolve(error.code === status.UNAUTHENTICATED ? { store: "" } : undefined);
      });
    });
  } finally {
    client.close();
  }
}

/** The idmint server behind the port of the probes. The probes say where it listens for gRPC. */
async function askProbes(target: string): Promise<Taker | undefined> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`http://${target}/healthz`, { signal, redirect: "error" });
    const answer = (await response.json()) as Readonly<Record<string, unknown>> | null;
    if (answer?.["service"] !== "idmint") return undefined;
    const grpc = String(answer["grpcAddress"]);
    const port = Number(/:(\d{1,5})$/.exec(grpc)?.[1] ?? Number.NaN);
    const host = grpc.slice(0, grpc.lastIndexOf(":"));
    // The server may want certificates of its callers, or may not listen yet.
    const node = Number.isNaN(port)
      ? undefined
      : await askNode(hostPort(reachable({ host, port })));
    return node ?? { store: "" };
  } catch {
    return undefined;
  }
}

function shown(text: string): string {
  return text.slice(0, MAX_PLACE).replaceAll(/[^\u0020-\u007e\u00a0-\uffff]/g, "?");
}
