import { expect, test } from "vitest";
import { hostUrls, withPassword } from "../../../src/store/shared/host-urls.ts";

test("each host of a URL gets a URL of its own", () => {
  expect(hostUrls("postgres://me@a:5433,b,[::1]:5/ids?sslmode=require")).toEqual([
    "postgres://me@a:5433/ids?sslmode=require",
    "postgres://me@b/ids?sslmode=require",
    "postgres://me@[::1]:5/ids?sslmode=require",
  ]);
  expect(hostUrls("postgresql:///ids?host=/run/pg")).toEqual(["postgresql:///ids?host=/run/pg"]);
});

test("target_session_attrs may ask for what idmint does anyway, and nothing else", () => {
  for (const value of ["read-write", "primary"]) {
    const text = `postgres://a,b/ids?target_session_attrs=${value}&sslmode=require`;
    expect(hostUrls(text)).toEqual([
      "postgres://a/ids?sslmode=require",
      "postgres://b/ids?sslmode=require",
    ]);
  }
  for (const value of ["any", "standby", "prefer-standby", "read-only", ""]) {
    expect(hostUrls(`postgres://a,b/ids?target_session_attrs=${value}`)).toBeUndefined();
    expect(hostUrls(`postgres://a/ids?target_session_attrs=${value}`)).toBeUndefined();
  }
});

test("an sslmode that is not known, or means less to others, is refused", () => {
  for (const mode of ["prefer", "allow", "verify_full", "", "require&sslmode=disable"]) {
    expect(hostUrls(`postgres://a/ids?sslmode=${mode}`), mode).toBeUndefined();
    expect(hostUrls(`postgres://a,b/ids?sslmode=${mode}`), mode).toBeUndefined();
  }
  for (const mode of ["disable", "no-verify", "require", "verify-ca", "verify-full"]) {
    expect(hostUrls(`postgres://a/ids?sslmode=${mode}`), mode).toHaveLength(1);
  }
  expect(hostUrls("postgres://a/ids?sslmode=prefer&uselibpqcompat=true")).toHaveLength(1);
});

test.for([
  ["no host between commas", "postgres://a,,b/ids"],
  ["no host at the end", "postgres://a,/ids"],
  ["a host twice", "postgres://a:5432,a/ids"],
  ["a port that is none", "postgres://a:x,b/ids"],
  ["more hosts than anybody has", `postgres://${"abcdefghi".split("").join(",")}/ids`],
  ["a socket beside hosts", "postgres://a,b/ids?host=/run/pg"],
  ["another scheme", "mysql://a,b/ids"],
])("%s is refused", ([, text]) => {
  expect(hostUrls(text ?? "")).toBeUndefined();
});

test("a password goes into the URL of every host, encoded, and replaces one", () => {
  const text = withPassword("postgres://me:old@a,b:1/ids?x=$1", "p@ss:/%");
  expect(hostUrls(text)?.map((url) => new URL(url).password)).toEqual(
    Array(2).fill("p%40ss%3A%2F%25"),
  );
  expect(hostUrls(text)?.[1]).toBe("postgres://me:p%40ss%3A%2F%25@b:1/ids?x=$1");
  expect(new URL(withPassword("postgres://a/ids", "p")).password).toBe("p");
  expect(withPassword("postgres://me@a,b/ids", undefined)).toBe("postgres://me@a,b/ids");
});
