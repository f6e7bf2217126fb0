import { inspect } from "node:util";
import { expect, test } from "vitest";
import { sentinelOptions } from "../../src/index.ts";

test("a URL of Sentinels has their addresses, the master's name, a user and a database", () => {
  expect(sentinelOptions("redis+sentinel://a:1,b.example:2,[::1]:3/orders")).toMatchObject({
    sentinels: [
      { host: "a", port: 1 },
      { host: "b.example", port: 2 },
      { host: "::1", port: 3 },
    ],
    name: "orders",
    db: 0,
  });
  const options = sentinelOptions("rediss+sentinel://m%40e:p%3A1@a:1/o.r-d_ers/7", {
    password: "other",
    sentinelUser: "watcher",
    sentinelPassword: "second",
  });
  expect(options).toMatchObject({
    name: "o.r-d_ers",
    db: 7,
    username: "m@e",
    password: "p:1",
    sentinelUsername: "watcher",
    sentinelPassword: "second",
    enableTLSForSentinelMode: true,
  });
  expect(sentinelOptions("redis+sentinel://me@a:1/o", { password: "x" })).toMatchObject({
    username: "me",
    password: "x",
  });
});

test.each([
  "redis+sentinel://a:1",
  "redis+sentinel://a:1/",
  "redis+sentinel:///orders",
  "redis+sentinel://a/orders",
  "redis+sentinel://a:0/orders",
  "redis+sentinel://a:65536/orders",
  "redis+sentinel://a:1,a:1/orders",
  "redis+sentinel://a:1,/orders",
  "redis+sentinel://a:1/or ders",
  "redis+sentinel://a:1/orders/x",
  "redis+sentinel://a:1/orders?password=s3cret",
  "redis+sentinel://me:s3cret@a/orders",
  "redis+sentinel://me:%s3cret@a:1/orders",
  `redis+sentinel://${Array.from({ length: 16 }, (_, at) => `h:${at + 1}`).join(",")}/orders`,
])("%s is refused with its form, and not shown", (url) => {
  let thrown: unknown;
  try {
    sentinelOptions(url);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ reason: "INVALID_ARGUMENT", metadata: { field: "url" } });
  expect(String(thrown)).toContain("redis+sentinel://host:port,host:port,host:port/master-name");
  expect(inspect(thrown, { depth: 20, showHidden: true })).not.toContain("s3cret");
});
