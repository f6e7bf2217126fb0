import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { consoleRoute } from "../../src/http/console.ts";
import { openDoor } from "./doors.ts";

const PAGE = `<!doctype html><script src="/console/assets/index-abc.js"></script>`;
const SCRIPT = "console.log('hello, hello, hello, hello');";

function built(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-console-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(path.join(folder, "assets"));
  for (const [name, text] of [
    ["index.html", PAGE],
    ["assets/index-abc.js", SCRIPT],
  ] as const) {
    writeFileSync(path.join(folder, name), text);
    writeFileSync(path.join(folder, `${name}.gz`), gzipSync(text));
    writeFileSync(path.join(folder, `${name}.br`), brotliCompressSync(text));
  }
  writeFileSync(path.join(folder, "sources.txt"), "not for anybody");
  return folder;
}

function open(folder: string): Promise<number> {
  return openDoor([consoleRoute(folder)]);
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

/** As the bytes are: fetch would decompress them, and tidy the path. */
function get(
  port: number,
  asked: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ port, host: "127.0.0.1", path: asked, method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const its = response.headers as Answer["headers"];
        resolve({ status: response.statusCode ?? 0, headers: its, body: Buffer.concat(chunks) });
      });
    })
      .on("error", reject)
      .end();
  });
}

const SECURITY = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
};

test("the page and its files come with a policy that allows nothing inline", async () => {
  const port = await open(built());
  for (const asked of ["/console/", "/console/index.html", "/console/assets/index-abc.js"]) {
    const { status, headers } = await get(port, asked);
    expect(status, asked).toBe(200);
    expect(headers).toMatchObject(SECURITY);
  }
  const page = await get(port, "/console/");
  expect(page.headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-cache",
    vary: "accept-encoding",
  });
  expect(page.body.toString()).toBe(PAGE);
  const script = await get(port, "/console/assets/index-abc.js");
  expect(script.headers).toMatchObject({
    "content-type": "text/javascript; charset=utf-8",
    "cache-control": "public, max-age=31536000, immutable",
  });
});

test("every view has an address, and what is no view is not found", async () => {
  const port = await open(built());
  const views = ["/console/tags/orders.eu", "/console/nodes?q=a%2Fb", "/console/a/b/c"];
  for (const asked of views) expect((await get(port, asked)).body.toString(), asked).toBe(PAGE);
  for (const asked of ["/", "/console"]) {
    const moved = await get(port, asked);
    expect(moved.status, asked).toBe(307);
    expect(moved.headers["location"]).toBe("/console/");
  }
  for (const asked of ["/console/assets/old.js", "/console/assets/", "/consoles", "/x"]) {
    expect((await get(port, asked)).status, asked).toBe(404);
  }
});

test("no path leads to another file", async () => {
  const port = await open(built());
  const paths = [
    "/console/sources.txt",
    "/console/index.html.br",
    "/console/../package.json",
    "/console/%2e%2e/package.json",
    "/console/..%2fpackage.json",
    "/console//etc/passwd",
    "/console/assets%2findex-abc.js",
  ];
  // They are addresses of no view that there is: the page says so itself.
  for (const asked of paths) expect((await get(port, asked)).body.toString(), asked).toBe(PAGE);
  for (const asked of ["/console/assets/../sources.txt", "/console/assets/%2e%2e/sources.txt"]) {
    expect((await get(port, asked)).status, asked).toBe(404);
  }
});

test.each([
  ["gzip, deflate, br, zstd", "br", brotliDecompressSync],
  ["gzip;q=1.0, br;q=0", "gzip", gunzipSync],
  ["BR", "br", brotliDecompressSync],
  ["gzip", "gzip", gunzipSync],
] as const)("a caller that accepts %j gets %s", async (accepted, encoding, read) => {
  const port = await open(built());
  const asked = { "accept-encoding": accepted };
  const { headers, body } = await get(port, "/console/assets/index-abc.js", asked);
  expect(headers["content-encoding"]).toBe(encoding);
  expect(headers["content-length"]).toBe(String(body.length));
  expect(read(body).toString()).toBe(SCRIPT);
});

test.each(["", "identity", "deflate", "br;q=0, gzip;q=0.000", "*"])(
  "a caller that accepts %j gets the file as it is",
  async (accepted) => {
    const port = await open(built());
    const asked = { "accept-encoding": accepted };
    const { headers, body } = await get(port, "/console/assets/index-abc.js", asked);
    expect(headers["content-encoding"]).toBeUndefined();
    expect(body.toString()).toBe(SCRIPT);
  },
);

test("what a browser has is not sent again, and each form has a tag of its own", async () => {
  const port = await open(built());
  const plain = await get(port, "/console/");
  const small = await get(port, "/console/", { "accept-encoding": "br" });
  expect(plain.headers["etag"]).toMatch(/^"[\w-]+"$/);
  expect(small.headers["etag"]).not.toBe(plain.headers["etag"]);
  const etag = small.headers["etag"] ?? "";
  const known = { "accept-encoding": "br", "if-none-match": `"x", W/${etag}` };
  const again = await get(port, "/console/", known);
  expect(again).toMatchObject({ status: 304, headers: { ...SECURITY, etag } });
  expect(again.headers["content-length"]).toBeUndefined();
  expect(again.body).toHaveLength(0);
  const other = await get(port, "/console/", { ...known, "if-none-match": plain.headers["etag"]! });
  expect(other.status).toBe(200);
});

test("HEAD has no body, and nothing can be sent", async () => {
  const port = await open(built());
  const head = await get(port, "/console/", {}, "HEAD");
  expect(head).toMatchObject({ status: 200, headers: { "content-length": String(PAGE.length) } });
  expect(head.body).toHaveLength(0);
  expect((await get(port, "/console/", {}, "POST")).status).toBe(405);
});

test("a clone that was never built says what to do", async () => {
  const port = await open(path.join(built(), "none"));
  const { status, body } = await get(port, "/console/");
  expect(status).toBe(404);
  expect(JSON.parse(body.toString())).toMatchObject({
    message: "the console is not built; run npx pnpm@10 build in the clone",
  });
});
