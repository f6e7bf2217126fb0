import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import { servesHttpApi } from "../../src/config/http.ts";
import { loadConfig } from "../../src/config/load.ts";

const served = (flags: Record<string, string>): boolean => servesHttpApi(loadConfig({ flags }));

function faultOf(flags: Record<string, string>): string {
  try {
    loadConfig({ flags });
  } catch (error) {
    if (error instanceof IdmintError) return error.message;
    throw error;
  }
  throw new Error("nothing was wrong");
}

test("the API is served over HTTP where no token crosses a network in plain text", () => {
  const open = { "http-address": "0.0.0.0:7601" };
  const tls = { "tls-cert-file": "a", "tls-key-file": "b" };
  expect(served({})).toBe(true);
  expect(served({ "http-api": "off" })).toBe(false);
  expect(served({ "http-address": "none" })).toBe(false);
  // Who opened the address for Prometheus opened the API to nobody.
  expect(served(open)).toBe(false);
  expect(served({ ...open, ...tls })).toBe(false);
  expect(served({ ...open, ...tls, "http-tls": "on" })).toBe(true);
  expect(served({ ...open, ...tls, "http-tls": "on", "http-api": "off" })).toBe(false);
  expect(served({ ...open, insecure: "true" })).toBe(true);
  expect(faultOf({ ...open, "http-api": "on" })).toContain(
    "http.api on would take tokens in plain text: 0.0.0.0:7601 can be reached from other machines",
  );
  expect(faultOf({ "http-tls": "on" })).toContain("http.tls needs tls.cert_file");
});

test("names of hosts are names, without ports and addresses", () => {
  const hosts = "IDS.example.com, *.inner.example,idmint,*";
  expect(loadConfig({ flags: { "http-hosts": hosts } }).httpHosts).toEqual([
    "ids.example.com",
    "*.inner.example",
    "idmint",
    "*",
  ]);
  for (const bad of ["a:80", "http://a", "10.0.0.1", "a.*", "*a", "a,,b", "a b", "-a", "[::1]"]) {
    expect(faultOf({ "http-hosts": bad }), bad).toContain("must be up to 64 names of hosts");
  }
});
