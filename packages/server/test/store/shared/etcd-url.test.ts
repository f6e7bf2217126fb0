import { expect, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { storePlace } from "../../../src/config/store-place.ts";
import { storeConfigOf } from "../../../src/main/stores.ts";
import { etcdPlace } from "../../../src/store/shared/etcd-url.ts";

test("a URL of etcd names its members and a prefix", () => {
  expect(etcdPlace("etcd://a:2379,b:2380,[::1]:1/ids/prod")).toEqual({
    hosts: ["a:2379", "b:2380", "[::1]:1"],
    prefix: "/ids/prod/",
    tls: false,
  });
  const byDefault = { hosts: ["a.example:65535"], prefix: "/idmint/", tls: true };
  expect(etcdPlace("etcds://a.example:65535")).toEqual(byDefault);
  expect(etcdPlace("etcds://a.example:65535/")).toEqual(byDefault);
});

test("what cannot be meant is no URL of etcd", () => {
  const many = Array.from({ length: 17 }, (_, i) => `h${i}:1`).join(",");
  const bad = [
    "etcd://",
    "etcd://a/ids",
    "etcd://a:0/ids",
    "etcd://a:65536/ids",
    "etcd://a:1,,b:1/ids",
    "etcd://a:1,a:1/ids",
    `etcd://${many}/ids`,
    "etcd://me:hunter2@a:1/ids",
    "etcd://me@a:1/ids",
    "etcd://a:1/ids?password=hunter2",
    "etcd://a:1//ids",
    "etcd://a:1/a b",
    "etcd:a:1",
    "http://a:1/ids",
  ];
  for (const text of bad) {
    expect(etcdPlace(text), text).toBeUndefined();
    expect(() => loadConfig({ env: { IDMINT_STORE_URL: text } })).not.toThrow(/hunter2/u);
    expect(() => loadConfig({ env: { IDMINT_STORE_URL: text } })).toThrow(/IDMINT_STORE_URL must/u);
  }
});

test("user, password and files have options of their own, and are not shown", () => {
  const config = loadConfig({
    env: {
      IDMINT_STORE_URL: "etcds://a:1,b:1/ids",
      IDMINT_STORE_USER: "me",
      IDMINT_STORE_PASSWORD: "hunter2",
      IDMINT_STORE_TLS_CA_FILE: "/ca.pem",
    },
  });
  expect(storePlace(config)).toBe("etcds://a:1,b:1/ids");
  expect(storeConfigOf(config)).toMatchObject({
    backend: "etcd",
    hosts: ["a:1", "b:1"],
    prefix: "/ids/",
    tls: { caFile: "/ca.pem" },
    user: "me",
    password: "hunter2",
  });
});

test.each([
  [{ IDMINT_STORE_USER: "me" }, "store.user needs a store.url of etcd"],
  [{ IDMINT_STORE_URL: "etcd://a:1", IDMINT_STORE_USER: "me" }, "must be set together"],
  [{ IDMINT_STORE_URL: "etcd://a:1", IDMINT_STORE_PASSWORD: "x" }, "must be set together"],
  [
    { IDMINT_STORE_URL: "etcd://a:1", IDMINT_STORE_TLS_CA_FILE: "f" },
    "needs a store.url that begins with etcds://",
  ],
  [{ IDMINT_STORE_URL: "etcds://a:1", IDMINT_STORE_TLS_KEY_FILE: "f" }, "must be set together"],
  [
    { IDMINT_STORE_URL: "etcd://a:1", IDMINT_STORE_MORE_URLS: "b=postgres://h/b" },
    "store.more_urls needs",
  ],
])("options that contradict each other are told: %j", (env, text) => {
  expect(() => loadConfig({ env })).toThrow(text);
});
