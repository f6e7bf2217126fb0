// Which calls are traced, and what OpenTelemetry's variables may say.
import { expect, test } from "vitest";
import { isSampled, samplingOf } from "../../../src/telemetry/otel/sampling.ts";
import { wantedOf } from "../../../src/telemetry/otel/variables.ts";

const parent = (flags: string): string => `00-${"a".repeat(32)}-${"b".repeat(16)}-${flags}`;

test("a caller that is traced, or is not, decides for what it calls; the others are traced by chance", () => {
  const sampling = { share: 0.25, followsCaller: true };
  expect(isSampled(sampling, parent("01"), () => 0.9)).toBe(true);
  expect(isSampled(sampling, parent("03"), () => 0.9)).toBe(true);
  expect(isSampled(sampling, parent("00"), () => 0)).toBe(false);
  expect(isSampled(sampling, parent("02"), () => 0)).toBe(false);
  for (const none of [undefined, "", "nonsense", Buffer.from(parent("01"))]) {
    expect(isSampled(sampling, none, () => 0.2)).toBe(true);
    expect(isSampled(sampling, none, () => 0.25)).toBe(false);
  }
  const alone = { share: 0, followsCaller: false };
  expect(isSampled(alone, parent("01"), () => 0)).toBe(false);
  expect(isSampled({ share: 1, followsCaller: false }, parent("00"), () => 0.99)).toBe(true);
});

const of = (sampler: string, ratio?: string): ReturnType<typeof samplingOf> =>
  samplingOf({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio });

test("the sampler is one of the standard ones, and its ratio a number from 0 to 1", () => {
  expect(samplingOf({})).toEqual({ share: 1, followsCaller: true });
  expect(of("always_off")).toEqual({ share: 0, followsCaller: false });
  expect(of("traceidratio", "0.01")).toEqual({ share: 0.01, followsCaller: false });
  expect(of("parentbased_traceidratio", "0.5")).toEqual({ share: 0.5, followsCaller: true });
  expect(() => of("sometimes")).toThrow("OTEL_TRACES_SAMPLER");
  for (const ratio of ["1.5", "-1", "many", " "])
    expect(() => of("traceidratio", ratio)).toThrow("OTEL_TRACES_SAMPLER_ARG");
});

test("a signal is exported when its exporter or an endpoint is named, and what there is not is refused", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
  const both = { traces: "http/protobuf", metrics: "http/protobuf" };
  const none = { traces: undefined, metrics: undefined };
  expect(wantedOf({})).toEqual(none);
  expect(wantedOf(endpoint)).toEqual(both);
  expect(wantedOf({ ...endpoint, OTEL_SDK_DISABLED: "true" })).toEqual(none);
  expect(wantedOf({ ...endpoint, OTEL_TRACES_EXPORTER: "none" })).toEqual({
    ...both,
    traces: undefined,
  });
  expect(wantedOf({ OTEL_TRACES_EXPORTER: "otlp", OTEL_METRICS_EXPORTER: "prometheus" })).toEqual({
    ...both,
    metrics: undefined,
  });
  const json = { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json" };
  expect(wantedOf({ ...endpoint, ...json })).toEqual({ ...both, traces: "http/json" });
  expect(() => wantedOf({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toThrow("4318");
  expect(() => wantedOf({ OTEL_TRACES_EXPORTER: "zipkin" })).toThrow("OTEL_TRACES_EXPORTER");
});
