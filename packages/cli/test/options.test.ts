import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import { resolveConnection } from "../src/flags/options.ts";

const PEM = Buffer.from("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n");

const readPem = () => PEM;

function missing(): never {
  throw Object.assign(new Error("no such file"), { code: "ENOENT" });
}

function fieldOf(resolve: () => unknown): string | undefined {
  try {
    resolve();
  } catch (error) {
    if (error instanceof IdmintError) return error.violations[0]?.field;
  }
  return undefined;
}

test("a flag wins over the environment, the environment over the default", () => {
  const env = { IDMINT_ADDRESS: "env:1" };
  expect(resolveConnection({ address: "flag:1" }, env, readPem).address).toBe("flag:1");
  expect(resolveConnection({}, env, readPem).address).toBe("env:1");
  expect(resolveConnection({}, { IDMINT_ADDRESS: "" }, readPem)).toEqual({
    address: "127.0.0.1:7600",
    timeoutMs: 5_000,
    tls: undefined,
  });
});

test("TLS is off unless asked for, and a file of authorities asks for it", () => {
  expect(resolveConnection({ tls: true }, {}, readPem).tls).toEqual({ caPem: undefined });
  expect(resolveConnection({ caFile: "ca.pem" }, {}, readPem).tls).toEqual({ caPem: PEM });
});

test("a bad value is refused under the name it came by", () => {
  expect(fieldOf(() => resolveConnection({}, { IDMINT_ADDRESS: "x" }, missing))).toBe(
    "IDMINT_ADDRESS",
  );
  expect(fieldOf(() => resolveConnection({ address: "x" }, {}, missing))).toBe("--address");
  expect(fieldOf(() => resolveConnection({ timeout: "5" }, {}, missing))).toBe("--timeout");
  expect(fieldOf(() => resolveConnection({ caFile: "ca.pem" }, {}, missing))).toBe("--ca-file");
  expect(fieldOf(() => resolveConnection({ caFile: "ca.pem" }, {}, () => Buffer.from("x")))).toBe(
    "--ca-file",
  );
});
