import { expect, test } from "vitest";
import { createIdClient, type IdClientOptions } from "../src/index.ts";
import { resolveOptions } from "../src/options.ts";
import { refusal, thrown } from "./support.ts";

/** Has the form, and no certificate or key in it. */
const PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

const bad: readonly (readonly [options: unknown, field: string])[] = [
  [{}, "address"],
  [undefined, "options"],
  [null, "options"],
  ["ids.example:7600", "options"],
  [{ address: "" }, "address"],
  [{ address: {} }, "address"],
  [{ address: 7600 }, "address"],
  [{ address: "http://127.0.0.1:7600" }, "address"],
  [{ address: "HTTPS://ids.example:7600/" }, "address"],
  [{ address: "grpc://ids.example:7600" }, "address"],
  [{ address: "dns:///http://ids.example:7600" }, "address"],
  [{ address: "localhost" }, "address"],
  [{ address: "localhost:" }, "address"],
  [{ address: "dns:///ids.example" }, "address"],
  [{ address: "ids.example:0" }, "address"],
  [{ address: "ids.example:65536" }, "address"],
  [{ address: "ids.example:7600/" }, "address"],
  [{ address: "::1:7600" }, "address"],
  [{ address: "::1" }, "address"],
  [{ address: "[::1]" }, "address"],
  [{ address: "ids.example:http" }, "address"],
  [{ address: "a b:1" }, "address"],
  [{ addresses: [] }, "addresses"],
  [{ addresses: "localhost:1" }, "addresses"],
  [{ addresses: ["a:1", "a:1"] }, "addresses"],
  [{ addresses: ["a:1", 5] }, "addresses"],
  [{ addresses: Array.from({ length: 65 }, (_, i) => `h${i}:1`) }, "addresses"],
  [{ address: "a:1", addresses: ["b:1"] }, "addresses"],
  [{ address: "localhost:1", tls: { ca: 5 } }, "tls.ca"],
  [{ address: "localhost:1", tls: { ca: ["-----BEGIN CERTIFICATE-----"] } }, "tls.ca"],
  [{ address: "localhost:1", tls: { ca: "/etc/ssl/ca.pem" } }, "tls.ca"],
  [{ address: "localhost:1", tls: { cert: "cert.pem", key: PEM } }, "tls.cert"],
  [{ address: "localhost:1", tls: { cert: PEM, key: new Uint8Array(9) } }, "tls.key"],
  [{ address: "localhost:1", tls: { cert: PEM, key: PEM } }, "tls"],
  [{ address: "localhost:1", tls: { serverName: 5 } }, "tls.serverName"],
  [{ address: "localhost:1", tls: { serverName: "" } }, "tls.serverName"],
  [{ address: "localhost:1", token: 5 }, "token"],
  [{ address: "localhost:1", token: "" }, "token"],
  [{ address: "localhost:1", token: "two words" }, "token"],
  [{ address: "ids.example:1", token: "idm_x" }, "token"],
  [{ address: "ids.example:1", tls: false, token: () => "idm_x" }, "token"],
  [{ addresses: ["localhost:1", "127.0.0.1.example:1"], token: "idm_x" }, "token"],
  [{ address: "a:1", adress: "b:1" }, "adress"],
  [{ address: "a:1", holdForMs: 999 }, "holdForMs"],
  [{ address: "a:1", holdForMs: "60000" }, "holdForMs"],
  [{ address: "a:1", min: 0 }, "min"],
  [{ address: "a:1", min: 2_000_000 }, "min"],
  [{ address: "a:1", max: 10_000_001 }, "max"],
  [{ address: "a:1", max: 1.5 }, "max"],
  [{ address: "a:1", prefetchShare: 0 }, "prefetchShare"],
  [{ address: "a:1", prefetchShare: 1.1 }, "prefetchShare"],
  [{ address: "a:1", prefetchShare: Number.NaN }, "prefetchShare"],
  [{ address: "a:1", maxAgeMs: 0 }, "maxAgeMs"],
  [{ address: "a:1", deadlineMs: 0 }, "deadlineMs"],
  [{ address: "a:1", deadlineMs: Infinity }, "deadlineMs"],
  [{ address: "a:1", rpcDeadlineMs: 99 }, "rpcDeadlineMs"],
  [{ address: "a:1", maxWaiters: 0 }, "maxWaiters"],
  [{ address: "a:1", maxTags: 0 }, "maxTags"],
  [{ address: "a:1", onEvent: "log" }, "onEvent"],
  [{ address: "a:1", tls: "yes" }, "tls"],
  [{ address: "a:1", tls: { cert: "x" } }, "tls.key"],
  [{ address: "a:1", tls: { key: "x" } }, "tls.cert"],
  [{ address: "a:1", tls: { caFile: "x" } }, "tls.caFile"],
  [{ address: "a:1", zone: "zone a" }, "zone"],
  [{ address: "a:1", zone: "-a" }, "zone"],
  [{ address: "a:1", zone: "z".repeat(65) }, "zone"],
  [{ address: "a:1", zone: 7 }, "zone"],
  [{ address: "a:1", worker: "pod" }, "worker"],
  [{ address: "a:1", worker: { name: "pod" } }, "worker.name"],
  [{ address: "a:1", worker: { instance: "" } }, "worker.instance"],
  [{ address: "a:1", worker: { instance: "a b" } }, "worker.instance"],
  [{ address: "a:1", worker: { instance: "a".repeat(127) } }, "worker.instance"],
  [{ address: "a:1", worker: { dataCenter: -1 } }, "worker.dataCenter"],
  [{ address: "a:1", worker: { dataCenter: 65_536 } }, "worker.dataCenter"],
  [{ address: "a:1", worker: { reserveAheadMs: 999 } }, "worker.reserveAheadMs"],
  [{ address: "a:1", worker: { reserveAheadMs: 60_001 } }, "worker.reserveAheadMs"],
];

test.each(bad)("%j is refused, and names %s", (options, field) => {
  const error = thrown(() => createIdClient(options as IdClientOptions));
  expect(error.code).toBe("INVALID_ARGUMENT");
  expect(error.violations.map((violation) => violation.field)).toContain(field);
});

test.each([
  "ids.example:7600",
  "127.0.0.1:1",
  "[::1]:65535",
  "dns:ids.example:7600",
  "dns:///ids.example:7600",
  "dns://10.0.0.1/ids.example:7600",
  "unix:/run/idmint.sock",
  "unix:///run/idmint.sock",
  "unix-abstract:idmint",
  "ipv4:10.0.0.1:7600,10.0.0.2:7600",
  "ipv6:[::1]:7600",
])("%s is an address", (address) => {
  expect(resolveOptions({ address }).addresses).toEqual([address]);
});

test("the refusal of a URL says what to write instead", () => {
  const { message } = thrown(() => createIdClient({ address: "https://u:secret@ids.example" }));
  expect(message).toBe(
    'INVALID_ARGUMENT: address must be host:port without https://, as in "ids.example:7600"; for TLS set the option tls',
  );
});

test("all bad options are named at once", () => {
  const error = thrown(() => createIdClient({ min: 0, maxTags: 0 }));
  expect(error.violations.map(({ field }) => field).toSorted()).toEqual([
    "address",
    "maxTags",
    "min",
  ]);
});

test("a secret in the options never shows in an error", () => {
  const key = "-----BEGIN PRIVATE KEY----- secret";
  const error = thrown(() => createIdClient({ address: "a:1", tls: { key } }));
  expect(JSON.stringify([error.message, error.violations, error.metadata])).not.toContain("secret");
});

test("the defaults are those of the docstrings", () => {
  const { worker, ...others } = resolveOptions({ address: "a:1" });
  expect(worker).toMatchObject({ dataCenter: undefined, reserveAheadMs: 3_000 });
  expect(worker.instance).toMatch(/^[A-Za-z0-9.-]{1,64}\/[0-9a-f]{16}$/);
  expect(others).toEqual({
    addresses: ["a:1"],
    zone: "",
    tls: false,
    holdForMs: 60_000,
    min: 100,
    max: 1_000_000,
    prefetchShare: 0.1,
    maxAgeMs: 86_400_000,
    deadlineMs: 5_000,
    rpcDeadlineMs: 2_000,
    maxWaiters: 10_000,
    maxTags: 10_000,
    onEvent: undefined,
  });
});

test("every client has a name of its own for its worker ids", () => {
  const names = Array.from({ length: 2 }, () => resolveOptions({ address: "a:1" }).worker.instance);
  expect(new Set(names).size).toBe(2);
});

test("a call tells that the function of the token failed, and why only in its cause", async () => {
  const cause = new Error("canary");
  await using client = createIdClient({
    address: "localhost:1",
    token: () => {
      throw cause;
    },
  });
  const error = await refusal(client.tag("orders").next());
  expect(error.reason).toBe("UNAUTHENTICATED");
  expect(error.message).toMatch(/^UNAUTHENTICATED: the function of the option token failed/);
  expect(error.message).not.toContain("canary");
  expect((error.cause as Error).cause).toBe(cause);
});

test("a token is never shown, and is asked for each time", () => {
  const secret = "idm_canary with a space";
  const error = thrown(() => resolveOptions({ address: "localhost:1", token: secret }));
  expect(String(error)).not.toContain("canary");
  const { token } = resolveOptions({ address: "localhost:1", token: () => secret });
  expect(() => token?.()).toThrow(/^UNAUTHENTICATED: (?!.*canary)/u);
  const failing = resolveOptions({
    address: "localhost:1",
    token: () => {
      throw new Error(secret);
    },
  });
  expect(() => failing.token?.()).toThrow(/^UNAUTHENTICATED: (?!.*canary)/u);
  let at = 0;
  const changing = resolveOptions({ address: "ids.example:1", tls: true, token: () => `t${at++}` });
  expect([changing.token?.(), changing.token?.()]).toEqual(["t0", "t1"]);
  for (const address of ["[::1]:1", "unix:/run/x", "dns:///localhost:1", "127.9.9.9:1"]) {
    expect(resolveOptions({ address, token: "idm_x" }).token?.(), address).toBe("idm_x");
  }
});

test.each([
  ["secret\n", "trim()"],
  [" secret", "trim()"],
  ["se cret", "without spaces"],
])(
  "a token with spaces or line breaks is refused with a hint, and never shown: %j",
  async (token, hint) => {
    const given = thrown(() => createIdClient({ address: "localhost:1", token }));
    await using client = createIdClient({ address: "localhost:1", token: () => token });
    const asked = await refusal(client.tag("orders").next());
    expect([given.reason, asked.reason]).toEqual(["INVALID_ARGUMENT", "UNAUTHENTICATED"]);
    for (const { message } of [given, asked]) {
      expect(message).toContain(hint);
      expect(message).not.toContain("cret");
    }
  },
);
