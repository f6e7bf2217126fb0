// Which role each method needs, and by which field of its request that is decided.
import { type Right, Rights, decide, ROLES } from "@idmint/core/server";
import * as proto from "@idmint/proto";
import { expect, test } from "vitest";
import { EXPECTED, type Expected } from "./expected-needs.ts";
import { allowAll, createApi } from "../../src/api/api.ts";

/** Handlers are made of rows alone; nothing is called. */
const nothing = new Proxy({}, { get: () => () => undefined }) as never;
const api = createApi({
  ids: nothing,
  decoder: nothing,
  capacity: nothing,
  lookups: nothing,
  tags: nothing,
  workers: nothing,
  node: nothing,
  health: nothing,
  issuing: nothing,
  admission: nothing,
  audit: nothing,
  auditList: nothing,
  counters: nothing,
  drain: nothing,
  traffic: nothing,
  own: nothing,
  fleet: nothing,
  tokens: nothing,
  access: nothing,
  wallClock: Date.now,
  authorise: allowAll,
  emit: () => undefined,
});

const requestBy = (by: Expected["by"], name: string): unknown => {
  if (by === undefined) return {};
  return by === "tag.name" ? { tag: { name } } : { [by]: name };
};

test("every method of the API says what it needs, and no other does", () => {
  const services = Object.entries(proto).filter(([name]) => name.endsWith("ServiceService"));
  const paths = services.flatMap(([, service]) =>
    Object.values(service as Record<string, { path: string }>).map(({ path }) => path),
  );
  const own = [...api.keys()].filter((path) => path.startsWith("/idmint."));
  expect(own.toSorted()).toEqual(paths.toSorted());
  for (const [path, { rule }] of api) expect(rule.isOpen || own.includes(path), path).toBe(true);
  const told = Object.keys(EXPECTED).map((name) => `/idmint.v1.${name}`);
  expect(told.toSorted()).toEqual(paths.toSorted());
});

const holding = (...rights: readonly Right[]): { rights: Rights } => ({
  rights: new Rights(rights),
});

test.each(Object.entries(EXPECTED))(
  "%s asks for the right role for the right name",
  (path, expected) => {
    const { rule } = api.get(`/idmint.v1.${path}`)!;
    const { may, by } = expected;
    expect(rule.isOpen).toBe(may === "everybody");
    if (may === "everybody") return;
    const name = rule.about(requestBy(by, "orders.eu"));
    expect(name).toBe(by === undefined ? "" : "orders.eu");
    expect(decide(undefined, rule, name)).toBe("UNAUTHENTICATED");
    if (may === "the known") {
      expect(decide(holding(), rule, name)).toBe("allowed");
      return;
    }
    const single = by !== undefined && by !== "prefix";
    for (const role of ROLES) {
      const verdict = may.includes(role) ? "allowed" : "PERMISSION_DENIED";
      expect(decide(holding({ role, tags: "*" }), rule, name), role).toBe(verdict);
      const mine = by === undefined ? "PERMISSION_DENIED" : verdict;
      expect(decide(holding({ role, tags: "orders.*" }), rule, name), role).toBe(mine);
      const exact = single ? verdict : "PERMISSION_DENIED";
      expect(decide(holding({ role, tags: "orders.eu" }), rule, name), role).toBe(exact);
      const other = holding({ role, tags: "invoices*" }, { role, tags: "orders.eu.x" });
      expect(decide(other, rule, name), role).toBe("PERMISSION_DENIED");
    }
  },
);

test("a request that names no tag needs a right for all of them", () => {
  for (const [path, { by }] of Object.entries(EXPECTED)) {
    if (by === undefined) continue;
    const { rule } = api.get(`/idmint.v1.${path}`)!;
    const name = rule.about(by === "tag.name" ? {} : { [by]: "" });
    const mine = holding(...ROLES.map((role) => ({ role, tags: "orders*" })));
    expect(decide(mine, rule, name), path).toBe("PERMISSION_DENIED");
  }
});
