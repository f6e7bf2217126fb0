// A real browser on a page of somebody else: it can neither read nor write, by whatever way it asks.
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startDev } from "@idmint/server";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { doorEnv } from "../../src/doors.ts";
import { startChromium } from "../../src/console/chromium.ts";

const PATIENCE_MS = 60_000;
let browser: Browser;
beforeAll(async () => {
  // As after a rebinding: the name is somebody else's, and its address this machine's.
  browser = await startChromium(["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
});
afterAll(async () => browser.close());

async function started(): Promise<{ readonly target: string; readonly port: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-origins-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const flags = {
    "store-url": `sqlite:${path.join(folder, "idmint.db")}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "http-leaf": "true",
  };
  const { server } = await startDev({ env: doorEnv(), flags });
  onTestFinished(() => server.close());
  const port = server.httpAddress.split(":").at(-1) ?? "";
  return { target: `http://${server.httpAddress}`, port };
}

/** A server of pages of somebody else. */
async function elsewhere(): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>evil</title><h1>evil</h1>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return String(typeof address === "object" ? address?.port : 0);
}

async function pageAt(url: string): Promise<Page> {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  return page;
}

/** What a page tries; each answers what it could read, and "nothing" where it could not. */
const ATTEMPTS = `async (target) => {
  const generate = target + "/idmint.v1.IdService/GenerateId";
  const body = '{"tag":"demo"}';
  const read = (work) => work.then((text) => String(text), () => "nothing");
  const asked = (url, options) => read(fetch(url, options).then(async (answer) => answer.type === "opaque" ? "nothing" : answer.status + " " + await answer.text()));
  const loaded = (element, attribute, url) => new Promise((resolve) => {
    element.onload = () => resolve("loaded");
    element.onerror = () => resolve("nothing");
    element[attribute] = url;
    document.body.append(element);
  });
  const post = { method: "POST", body };
  return {
    json: await asked(generate, { ...post, headers: { "content-type": "application/json" } }),
    bytes: await asked(generate, { ...post, headers: { "content-type": "application/proto" } }),
    text: await asked(generate, { ...post, mode: "no-cors" }),
    form: await asked(generate, { method: "POST", mode: "no-cors", body: new URLSearchParams({ tag: "demo" }) }),
    blob: await asked(generate, { method: "POST", mode: "no-cors", body: new Blob([body], { type: "application/json" }) }),
    token: await asked(generate, { ...post, credentials: "include", headers: { "content-type": "application/json", authorization: "Bearer x" } }),
    beacon: (navigator.sendBeacon(generate, body), "nothing"),
    metrics: await asked(target + "/metrics"),
    quietly: await asked(target + "/metrics", { mode: "no-cors" }),
    console: await asked(target + "/console/"),
    leaf: await asked(target + "/api/segment/get/demo"),
    image: await loaded(new Image(), "src", target + "/api/segment/get/demo"),
    script: await loaded(document.createElement("script"), "src", target + "/metrics"),
    socket: await new Promise((resolve) => {
      const socket = new WebSocket(generate.replace("http", "ws"));
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("nothing");
    }),
  };
}`;

const attempted = (page: Page, target: string): Promise<Readonly<Record<string, string>>> =>
  page.evaluate(`(${ATTEMPTS})(${JSON.stringify(target)})`);

async function mint(target: string): Promise<unknown> {
  const response = await fetch(`${target}/idmint.v1.IdService/GenerateId`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"tag":"demo"}',
  });
  return response.json();
}

test("pages of other origins read nothing and write nothing", async () => {
  const { target, port } = await started();
  const evil = await elsewhere();
  const all = [`http://evil.example:${evil}`, `http://localhost:${evil}`].flatMap((origin) =>
    [target, `http://localhost:${port}`].map((asked) => [origin, asked] as const),
  );
  // The first is of another site; the last of the same site, and of another origin.
  const pairs = process.env["IDMINT_LONG"] === "1" ? all : [all[0], all[3]];
  for (const [origin, asked] of pairs.filter((pair) => pair !== undefined)) {
    const page = await pageAt(origin);
    const results = await attempted(page, asked);
    expect(Object.keys(results)).toHaveLength(14);
    for (const [way, result] of Object.entries(results)) {
      expect(result, `${way} of ${origin} at ${asked}`).toBe("nothing");
    }
    // A form that takes the window along, with a body that is JSON but for a sign.
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.request().isNavigationRequest()),
      page.evaluate(`(() => {
        const form = document.createElement("form");
        Object.assign(form, { method: "post", enctype: "text/plain", action: ${JSON.stringify(`${asked}/idmint.v1.IdService/GenerateId`)} });
        const field = document.createElement("input");
        Object.assign(field, { name: '{"tag":"demo","x":"', value: '"}' });
        form.append(field);
        document.body.append(form);
        form.submit();
      })()`),
    ]);
    expect(answer.status()).toBe(403);
  }
  // Nobody minted, so this is the first one.
  expect(await mint(target)).toMatchObject({ id: "1" });
});

test("a page whose name was given this server's address reads no more than its health", async () => {
  const { target, port } = await started();
  const name = `http://evil.example:${port}`;
  // What is answered under every name is a page of that origin, with which all the rest is of the same origin.
  const page = await pageAt(`${name}/healthz`);
  const results = await attempted(page, name);
  const { json, metrics, leaf, console: pages } = results;
  for (const answer of [json, metrics, leaf, pages]) expect(answer).toMatch(/^421 /);
  expect(results["socket"]).toBe("nothing");
  expect(await mint(target)).toMatchObject({ id: "1" });
});

test("a page of this origin may do what its reader may", async () => {
  const { target } = await started();
  const page = await pageAt(`${target}/healthz`);
  const { json, metrics, leaf } = await attempted(page, target);
  expect(json).toMatch(/^200 .*"id":"1"/);
  expect(metrics).toMatch(/^200 /);
  expect(leaf).toMatch(/^200 \d+$/);
});
