import { jsonAnswer } from "./answers.ts";
import type { HttpAnswer, Route } from "./route.ts";

const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** What is asked by probes and by Prometheus. */
export interface Probes {
  /** The metrics, in Prometheus' text format; undefined: there are none. */
  readonly metrics?: (() => Promise<string>) | undefined;
  /** Where this server listens for gRPC; empty before it does. */
  readonly grpcAddress: () => string;
  /** Whether callers should be sent here, and why not. */
  readonly ready: () => Readiness | Promise<Readiness>;
}

export interface Readiness {
  readonly ready: boolean;
  readonly state: string;
  /** Why not, where an operator wants that. */
  readonly reason?: string;
  /** Where there are several processes: how many, and how many of them are ready. */
  readonly processes?: { readonly total: number; readonly ready: number };
}

/** /healthz (the process lives) and /readyz (send callers here), as JSON; /metrics for Prometheus. */
export function probeRoutes({ metrics, grpcAddress, ready }: Probes): readonly Route[] {
  const health = at("/healthz", () =>
    // Who finds the port taken sees by whom.
    jsonAnswer(200, { status: "alive", service: "idmint", grpcAddress: grpcAddress() }),
  );
  const readiness = at("/readyz", async () => {
    const status = await ready();
    return jsonAnswer(status.ready ? 200 : 503, status);
  });
  // Balancers ask under whatever name they have.
  const routes: Route[] = [health, readiness].map((each) => ({ ...each, audience: "anybody" }));
  return metrics === undefined ? routes : [...routes, at("/metrics", () => collected(metrics))];
}

function at(path: string, answer: Route["answer"]): Route {
  return { matches: (asked) => asked === path, methods: ["GET"], isProbe: true, answer };
}

async function collected(metrics: () => Promise<string>): Promise<HttpAnswer> {
  try {
    return { status: 200, headers: { "content-type": METRICS_TYPE }, body: await metrics() };
  } catch {
    return jsonAnswer(500, { code: "internal", message: "the metrics could not be collected" });
  }
}
