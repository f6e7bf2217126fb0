import type { IncomingHttpHeaders } from "node:http";
import fc from "fast-check";
import { expect, test } from "vitest";
import { HttpRefusal } from "../../src/http/answers.ts";
import { assertSameOrigin, Hosts } from "../../src/http/hosts.ts";

const statusOf = (work: () => void): number => {
  try {
    work();
    return 200;
  } catch (thrown) {
    if (thrown instanceof HttpRefusal) return thrown.status;
    throw thrown;
  }
};
const of = (headers: IncomingHttpHeaders, isPage = false): number =>
  statusOf(() => assertSameOrigin({ host: "localhost:7601", ...headers }, isPage));
const asked = (hosts: Hosts, host: string | undefined): number =>
  statusOf(() => hosts.assertHost(host === undefined ? {} : { host }));

test("addresses and names that nobody else can have are believed, others only when they are named", () => {
  const hosts = new Hosts(["ids.example.com", "*.inner.example"]);
  for (const host of [
    "127.0.0.1:7601",
    "10.1.2.3",
    "[::1]:7601",
    "localhost:7601",
    "LocalHost",
    "console.localhost:7601",
    "localhost.:7601",
    "ids.example.com",
    "IDS.example.com:443",
    "a.inner.example",
    "a.b.inner.example:80",
  ]) {
    expect(asked(hosts, host), host).toBe(200);
  }
  for (const host of [
    undefined,
    "",
    "evil.example",
    "evil.example:7601",
    "notlocalhost",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "ids.example.com.evil.example",
    "evilids.example.com",
    "inner.example",
    "evilinner.example",
    "localhost, evil.example",
    "localhost@evil.example",
    "localhost:7601:80",
    "127.0.0.1:7601/evil",
    "[::1].evil.example",
    "0x7f000001",
    "*",
  ]) {
    expect(asked(hosts, host), host).toBe(421);
    // It does not become known by being asked often.
    expect(asked(hosts, host), host).toBe(421);
  }
  expect(asked(new Hosts(["*"]), "evil.example")).toBe(200);
});

test("no name of somebody else's domain is believed, however it is written", () => {
  const hosts = new Hosts(["ids.example.com"]);
  const labels = fc.array(fc.constantFrom("localhost", "ids", "example", "com", "a-b", "127"), {
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(labels, fc.constantFrom("", ":80", "."), (names, end) => {
      expect(asked(hosts, `${names.join(".")}.evil.test${end}`)).toBe(421);
    }),
  );
});

test("what a browser says of a page of another origin refuses its request", () => {
  expect(of({})).toBe(200);
  expect(of({ origin: "http://localhost:7601", "sec-fetch-site": "same-origin" })).toBe(200);
  expect(of({ origin: "https://LOCALHOST:7601" })).toBe(200);
  expect(of({ "sec-fetch-site": "none" })).toBe(200);
  for (const origin of [
    "null",
    "",
    "http://evil.example",
    "http://localhost:3000",
    "http://localhost",
    "file://localhost:7601",
    "http://localhost:7601.evil.example",
    "http://evil.example, http://localhost:7601",
  ]) {
    expect(of({ origin }), origin).toBe(403);
  }
  for (const site of ["same-site", "cross-site", "anything"]) {
    expect(of({ "sec-fetch-site": site }), site).toBe(403);
    expect(of({ "sec-fetch-site": site }, true), site).toBe(403);
    const link = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    expect(of({ "sec-fetch-site": site, ...link }), site).toBe(403);
    expect(of({ "sec-fetch-site": site, ...link }, true), site).toBe(200);
    const frame = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" };
    expect(of({ "sec-fetch-site": site, ...frame }, true), site).toBe(403);
  }
});
