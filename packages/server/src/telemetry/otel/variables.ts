import { invalidField } from "@idmint/core";

/** What OpenTelemetry's standard variables ask for. Everything else of them is read by its exporters. */
export interface Wanted {
  readonly traces: Protocol | undefined;
  readonly metrics: Protocol | undefined;
}

export type Protocol = "http/protobuf" | "http/json";

const SIGNALS = ["traces", "metrics"] as const;
const ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT";

/**
 * Which signals are exported by OTLP: those whose exporter is `otlp`, or that have an endpoint and no exporter named.
 * Throws for exporters and protocols that there are not.
 */
export function wantedOf(env: NodeJS.ProcessEnv): Wanted {
  const [traces, metrics] = SIGNALS.map((signal) => protocolOf(env, signal));
  return { traces, metrics };
}

function protocolOf(
  env: NodeJS.ProcessEnv,
  signal: (typeof SIGNALS)[number],
): Protocol | undefined {
  if (env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return undefined;
  const upper = signal.toUpperCase();
  const variable = `OTEL_${upper}_EXPORTER`;
  const hasEndpoint = isSet(env[ENDPOINT]) || isSet(env[`OTEL_EXPORTER_OTLP_${upper}_ENDPOINT`]);
  const named = isSet(env[variable]) ? env[variable] : undefined;
  const exporter = named ?? (hasEndpoint ? "otlp" : "none");
  // Those who scrape find the metrics at /metrics in any case.
  if (exporter === "none" || (exporter === "prometheus" && signal === "metrics")) return undefined;
  if (exporter !== "otlp") {
    throw invalidField(variable, "must be otlp or none", "UNKNOWN_VALUE");
  }
  const its = `OTEL_EXPORTER_OTLP_${upper}_PROTOCOL`;
  const asked = isSet(env[its]) ? its : "OTEL_EXPORTER_OTLP_PROTOCOL";
  const protocol = isSet(env[asked]) ? env[asked] : "http/protobuf";
  if (protocol === "http/protobuf" || protocol === "http/json") return protocol;
  const text =
    "must be http/protobuf or http/json; collectors take both on port 4318, and gRPC on 4317";
  throw invalidField(asked, text, "UNKNOWN_VALUE");
}

function isSet(text: string | undefined): text is string {
  return text !== undefined && text !== "";
}
