import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A span as OTLP's JSON has it. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
  readonly status?: { readonly code?: number };
}

/** A collector of OpenTelemetry: takes what exporters send by HTTP as JSON, and closes when the test ends. */
export interface Collector {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  /** Names of metrics, with how many points came last. */
  readonly metrics: Map<string, number>;
  readonly resources: Record<string, unknown>[];
  readonly headers: IncomingHttpHeaders[];
  /** What it answers from now on. */
  status: number;
}

interface Body {
  readonly resourceSpans?: readonly {
    readonly resource: { attributes: ReceivedSpan["attributes"] };
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly ({ readonly name: string } & Record<
        string,
        { readonly dataPoints?: readonly unknown[] }
      >)[];
    }[];
  }[];
}

export async function startCollector(): Promise<Collector> {
  const collector: Collector = {
    url: "",
    spans: [],
    metrics: new Map(),
    resources: [],
    headers: [],
    status: 200,
  };
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      collector.headers.push(request.headers);
      if (collector.status === 200)
        take(collector, JSON.parse(String(Buffer.concat(pieces))) as Body);
      response.writeHead(collector.status, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return Object.assign(collector, { url: `http://127.0.0.1:${port}` });
}

function take(collector: Collector, { resourceSpans = [], resourceMetrics = [] }: Body): void {
  for (const { resource, scopeSpans } of resourceSpans) {
    collector.resources.push(attributesOf(resource));
    for (const { spans } of scopeSpans) collector.spans.push(...spans);
  }
  for (const { scopeMetrics } of resourceMetrics) {
    for (const { metrics } of scopeMetrics) {
      for (const { name, sum, gauge, histogram } of metrics) {
        collector.metrics.set(name, (sum ?? gauge ?? histogram)?.dataPoints?.length ?? 0);
      }
    }
  }
}

export function attributesOf({
  attributes,
}: Pick<ReceivedSpan, "attributes">): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, Object.values(value)[0]] as const),
  );
}
