import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { listen } from "../tcp.ts";

/** Small requests only, and nobody may be slow about them. */
const LIMITS = {
  maxHeaderSize: 8 * 1_024,
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
};
const MAX_CONNECTIONS = 256;
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export interface HttpDoorOptions {
  readonly host: string;
  readonly port: number;
}

/** What is asked over HTTP. */
export interface Probes {
  /** The metrics, in Prometheus' text format; undefined: there are none. */
  readonly metrics?: (() => Promise<string>) | undefined;
  /** Where this server listens for gRPC; empty before it does. */
  readonly grpcAddress: () => string;
  /** Whether callers should be sent here, and why not. */
  readonly ready: () => {
    readonly ready: boolean;
    readonly state: string;
    /** Why not, where an operator wants that. */
    readonly reason?: string;
    /** Where there are several processes: how many, and how many of them are ready. */
    readonly processes?: { readonly total: number; readonly ready: number };
  };
}

/** /healthz (the process lives) and /readyz (send callers here), as JSON; /metrics for Prometheus. */
export class HttpDoor {
  readonly #server: Server;
  readonly #options: HttpDoorOptions;

  constructor(probes: Probes, options: HttpDoorOptions) {
    this.#options = options;
    // An import of node:http reads all it exports, and so loads Node's HTTP client too: 14 MB that nobody uses here.
    const { createServer } = process.getBuiltinModule("node:http");
    this.#server = createServer(LIMITS, (request, response) => answer(probes, request, response));
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.maxRequestsPerSocket = 1_000;
  }

  /** Fulfils with the port; rejects when the address cannot be had. */
  listen(): Promise<number> {
    const { host, port } = this.#options;
    return listen(this.#server, { host, port }, () => undefined);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

function answer(probes: Probes, request: IncomingMessage, response: ServerResponse): void {
  // No answer depends on a body, so none is read.
  request.resume();
  const path = (request.url ?? "").split("?", 1)[0];
  const { metrics } = probes;
  if (path !== "/healthz" && path !== "/readyz" && (path !== "/metrics" || metrics === undefined)) {
    const all = metrics === undefined ? "/healthz and /readyz" : "/healthz, /readyz and /metrics";
    send(response, 404, { error: `not found; there are ${all}` });
  } else if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    send(response, 405, { error: "only GET and HEAD" });
  } else if (path === "/metrics") {
    void sendMetrics(metrics, response);
  } else if (path === "/healthz") {
    // Who finds the port taken sees by whom.
    send(response, 200, { status: "alive", service: "idmint", grpcAddress: probes.grpcAddress() });
  } else {
    const status = probes.ready();
    send(response, status.ready ? 200 : 503, { ...status });
  }
}

async function sendMetrics(metrics: Probes["metrics"], response: ServerResponse): Promise<void> {
  try {
    sendText(response, 200, METRICS_TYPE, (await metrics?.()) ?? "");
  } catch {
    send(response, 500, { error: "the metrics could not be collected" });
  }
}

function send(response: ServerResponse, status: number, body: Record<string, unknown>): void {
  sendText(response, status, "application/json; charset=utf-8", `${JSON.stringify(body)}\n`);
}

function sendText(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(text);
}
