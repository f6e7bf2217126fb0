import { connect } from "node:tls";
import { type ChannelCredentials, credentials, Metadata, status } from "@grpc/grpc-js";
import { NodeServiceClient } from "@idmint/proto/grpc-js";
import type { Taker } from "./address.ts";

/** Nothing is told to whoever answers, so it need not prove who it is. */
const ANYBODY = { rejectUnauthorized: false };
/** Longest text of another program that is shown. */
const MAX_PLACE = 300;

/** The idmint server behind a gRPC port; undefined when there is none, or none that answers. */
export async function askNode(target: string, timeoutMs: number): Promise<Taker | undefined> {
  const [answer, isSecure] = await Promise.all([
    askBy(credentials.createInsecure(), target, timeoutMs),
    speaksTls(target, timeoutMs),
  ]);
  if (answer !== undefined || !isSecure) return answer;
  return askBy(credentials.createSsl(null, null, null, ANYBODY), target, timeoutMs);
}

/** Whether a TLS handshake succeeds. gRPC never gives one up, and would keep this process alive for a silent stranger. */
async function speaksTls(target: string, timeoutMs: number): Promise<boolean> {
  const { hostname, port } = new URL(`tcp://${target}`);
  const host = hostname.replaceAll(/[[\]]/g, "");
  const socket = connect({ host, port: Number(port), ALPNProtocols: ["h2"], ...ANYBODY });
  try {
    return await new Promise((resolve) => {
      socket.setTimeout(timeoutMs, () => resolve(false));
      socket.once("secureConnect", () => resolve(true));
      socket.once("error", () => resolve(false));
      socket.once("close", () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}

async function askBy(
  by: ChannelCredentials,
  target: string,
  timeoutMs: number,
): Promise<Taker | undefined> {
  const client = new NodeServiceClient(target, by, {
    // Whoever it is: nothing is told to it, and its certificate may be for any name.
    "grpc.ssl_target_name_override": "localhost",
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    "grpc.enable_http_proxy": 0,
  });
  try {
    return await new Promise((resolve) => {
      const options = { deadline: Date.now() + timeoutMs };
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

function shown(text: string): string {
  return text.slice(0, MAX_PLACE).replaceAll(/[^\u0020-\u007e\u00a0-\uffff]/g, "?");
}
