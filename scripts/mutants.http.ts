// The door of HTTP: what JSON may say, whose requests are answered, how much connections may take.
import type { Mutant } from "./mutant.ts";

const http = "packages/server/src/http";
const connectTests = ["packages/server/test/http/connect.e2e.test.ts"];
const hostTests = ["packages/server/test/http/hosts.test.ts"];
const limitTests = ["packages/server/test/http/limits.e2e.test.ts"];

export const httpMutants: readonly Mutant[] = [
  {
    name: "http: unknown fields of JSON are dropped",
    file: `${http}/json.ts`,
    find: "    if (field === undefined) {",
    replace: "    if (field === undefined && path !== path) {",
    tests: connectTests,
  },
  {
    name: "http: numbers that JSON cannot hold are rounded",
    file: `${http}/json.ts`,
    find: "&& Number.isInteger(value) && !Number.isSafeInteger(value)",
    replace: "&& !Number.isInteger(value) && !Number.isSafeInteger(value)",
    tests: connectTests,
  },
  {
    name: "http: a field that comes twice has its last value",
    file: `${http}/json.ts`,
    find: "toBinary(input, fromJsonString(input, text))",
    replace: "toBinary(input, fromJson(input, JSON.parse(text) as JsonValue))",
    tests: connectTests,
  },
  {
    name: "http: a form of another page is taken",
    file: `${http}/connect.ts`,
    find: 'if (type.trim() === "application/json" && isUtf8) return true;',
    replace: 'if (type.trim() !== "application/proto" && isUtf8) return true;',
    tests: connectTests,
  },
  {
    name: "http: a call goes on when its caller is gone",
    file: `${http}/call-context.ts`,
    find: "    request.onGone(() => this.abort());",
    replace: "    request.onGone(() => this.caller);",
    tests: connectTests,
  },
  {
    name: "http: a name that begins like ours is believed",
    file: `${http}/hosts.ts`,
    find: 'name.endsWith(".localhost") ||',
    replace: 'name.startsWith("localhost") ||',
    tests: hostTests,
  },
  {
    name: "http: a page of another port is of this origin",
    file: `${http}/hosts.ts`,
    find: "its.toLowerCase() === host.toLowerCase()",
    replace: 'its.toLowerCase().split(":")[0] === host.toLowerCase().split(":")[0]',
    tests: hostTests,
  },
  {
    name: "http: hosts are not looked at",
    file: `${http}/door.ts`,
    find: "      this.#options.hosts.assertHost(headers);\n",
    replace: "",
    tests: limitTests,
  },
  {
    name: "http: connections use up those of probes",
    file: `${http}/connections.ts`,
    find: "if (this.#reserved.size >= MAX_RESERVED) {",
    replace: "if (this.#reserved.size >= MAX_RESERVED) {\n      socket.destroy();\n      return;",
    tests: limitTests,
  },
  {
    name: "http: one connection may have any number of requests",
    file: `${http}/door.ts`,
    find: "if (connection.unanswered > MAX_UNANSWERED)",
    replace: "if (connection.unanswered > 1_000 * MAX_UNANSWERED)",
    tests: limitTests,
  },
  {
    name: "http: a body of any size is read",
    file: `${http}/request.ts`,
    find: "if (length <= MAX_BODY_BYTES) return;",
    replace: "if (length <= 1_000 * MAX_BODY_BYTES) return;",
    tests: limitTests,
  },
  {
    name: "http: who is slow to send is waited for",
    file: `${http}/connections.ts`,
    find: 'server.emit("listening");',
    replace: 'server.emit("waiting");',
    tests: limitTests,
  },
  {
    name: "http: a caller without a certificate is taken",
    file: `${http}/door.ts`,
    find: "if (asksClients && route.isProbe !== true && !connection.isAuthorized) {",
    replace: "if (asksClients && route.isProbe === true && !connection.isAuthorized) {",
    tests: ["packages/server/test/http/tls.e2e.test.ts"],
  },
  {
    name: "http: the parent leaves what no process takes unread",
    file: `${http}/door.ts`,
    find: "    socket.resume();\n",
    replace: "",
    tests: ["packages/server/test/http/processes.e2e.test.ts"],
  },
  {
    name: "http: an address opened for Prometheus serves the API",
    file: "packages/server/src/config/http.ts",
    find: "insecure || isLoopback(httpAddress);",
    replace: "insecure || httpAddress.port > 0;",
    tests: ["packages/server/test/config/http.test.ts"],
  },
  {
    name: "http: what breaks in a body is not told",
    file: `${http}/speaker.ts`,
    find: "breakOff(its, why);",
    replace: "its.destroy();",
    tests: limitTests,
    only: "too large|slow to send",
  },
  {
    name: "http: what was answered before it was whole is answered again",
    file: `${http}/speaker.ts`,
    find: '!isBusy(its, "unanswered") && !isBusy(its, "unfinished")',
    replace: '!isBusy(its, "unanswered")',
    tests: limitTests,
    only: "slow to send",
  },
  {
    name: "http: the host of a target in the absolute form is not looked at",
    file: `${http}/request.ts`,
    find: "{ ...message.headers, host }",
    replace: "message.headers",
    tests: limitTests,
    only: "absolute form",
  },
];
