import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import { resolveConnection } from "../../src/flags/options.ts";

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
  const env = { IDMINT_CA_FILE: "ca.pem" };
  expect(resolveConnection({}, env, readPem).tls).toEqual({ caPem: PEM });
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

const tokenFile = (): Buffer => Buffer.from("idm_file\n");

const tokenOf = (flags: object, env: Record<string, string> = {}): string | undefined =>
  resolveConnection(flags, env, tokenFile).token;

test("a token comes from a flag, a file or the environment, and goes nowhere in plain text", () => {
  expect(tokenOf({})).toBeUndefined();
  expect(tokenOf({}, { IDMINT_TOKEN: "" })).toBeUndefined();
  expect(tokenOf({}, { IDMINT_TOKEN: "idm_env" })).toBe("idm_env");
  expect(tokenOf({ tokenFile: "f" }, { IDMINT_TOKEN: "idm_env" })).toBe("idm_file");
  expect(tokenOf({ token: "idm_flag", tokenFile: "f" })).toBe("idm_flag");
  for (const address of ["127.0.0.1:1", "localhost:1", "[::1]:1"]) {
    expect(tokenOf({ token: "x", address })).toBe("x");
  }
  const elsewhere = { token: "idm_secret", address: "ids.example:7600" };
  expect(() => tokenOf(elsewhere)).toThrow("--token would go to another machine in plain text");
  expect(tokenOf({ ...elsewhere, tls: true })).toBe("idm_secret");
  // A host that only begins like this machine is another one.
  expect(() => tokenOf({ token: "x", address: "127.0.0.1.example:1" })).toThrow("plain text");
  for (const wrong of ["idm_two words", "", "idm_\u00e9"]) {
    expect(() => tokenOf({ token: wrong })).toThrow(/^INVALID_ARGUMENT: --token must be the text/u);
  }
});
