import type { Option } from "../config/option.ts";
import { type Config, OPTIONS } from "../config/table.ts";
import type { Address } from "../config/types.ts";
import { addressError, hostPort, type Taker, tryAddress } from "./address.ts";

/** A program that listens here answers at once, if it answers at all. */
const TIMEOUT_MS = 1_000;

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

/** Loaded when an address is taken: it speaks through grpc-js. */
async function askNode(target: string): Promise<Taker | undefined> {
  return (await import("./ask-node.ts")).askNode(target, TIMEOUT_MS);
}

/** Where to ask a program that may listen on all addresses of this machine. */
function reachable({ host, port }: Address): Address {
  if (host === "0.0.0.0") return { host: "127.0.0.1", port };
  return { host: host === "::" ? "::1" : host, port };
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
