// The harness of the console's tests, on pages that are wrong on purpose: each fault is noticed.
import { createServer, type Server } from "node:http";
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PICTURES, THEMES, useChromium } from "../../src/console/index.ts";
import { View } from "../../src/console/view.ts";

const open = useChromium();

const pages: Readonly<Record<string, string>> = {
  "/good": `<h1>Good</h1><p>All is well.</p><button>Go</button>`,
  "/pale": `<h1>Pale</h1><p style="color:#ccc;background:#fff">Hardly to be read</p>`,
  "/nameless": `<h1>Nameless</h1><button></button><input>`,
  "/wide": `<h1>Wide</h1><div style="width:2000px">much</div>`,
  "/scrolls": `<h1>Scrolls</h1><div style="overflow-x:auto" tabindex="0"><div style="width:2000px">much</div></div>`,
  "/inline": `<h1>Inline</h1><script>document.title = "run"</script>`,
  "/elsewhere": `<h1>Elsewhere</h1><img alt="" src="http://127.0.0.1:9/a.png">`,
  "/throws": `<h1>Throws</h1><script src="/throws.js"></script>`,
  "/asks": `<h1>Asks</h1><script src="/asks.js"></script>`,
  "/keeps": `<h1>Keeps</h1><label>Secret <input id="typed"></label><script src="/keeps.js"></script>`,
};
const scripts: Readonly<Record<string, string>> = {
  "/throws.js": `throw new Error("by itself")`,
  "/asks.js": `alert(1)`,
  "/keeps.js": `sessionStorage.setItem("a", "in-session"); localStorage.setItem("b", "in-local");
    document.cookie = "c=in-cookie"; history.replaceState("in-history", "");
    document.getElementById("typed").value = "in-field"; console.log("in-said"); fetch("/good?in-asked");
    document.querySelector("h1").dataset.x = "in-source";`,
};

let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer(({ url = "" }, response) => {
    const at = new URL(url, "http://x").pathname;
    const [type, text] =
      at in scripts ? ["text/javascript", scripts[at]] : ["text/html", html(pages[at] ?? "")];
    response.setHeader("content-security-policy", "script-src 'self'");
    response.writeHead(200, { "content-type": `${type}; charset=utf-8` }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
});
afterAll(() => server.close());

function html(body: string): string {
  return `<!doctype html><html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"></head><body><main>${body}</main></body></html>`;
}

test("a good page passes in both themes, and is pictured", async () => {
  for (const theme of THEMES) {
    const view = await open(origin, { theme });
    await view.goto("/good");
    await view.sees("All is well.");
    await view.misses("All is lost.");
    await view.assertAccessible("good");
    await view.assertFits("good");
    const name = `harness-${theme}`;
    await view.picture(name);
    const file = path.join(PICTURES, `${name}.png`);
    expect(existsSync(file)).toBe(true);
    rmSync(file);
    const isDark = await view.page.evaluate(`matchMedia("(prefers-color-scheme: dark)").matches`);
    expect(isDark).toBe(theme === "dark");
  }
});

test.for([
  ["/pale", /color-contrast.*[\s\S]*Hardly to be read/],
  ["/nameless", /button-name[\s\S]*label/],
] as const)("axe notices what is wrong on %s", async ([at, finding]) => {
  const view = await open(origin);
  await view.goto(at);
  await expect(view.assertAccessible(at)).rejects.toThrow(finding);
});

test("a page that is wider than a phone is noticed, unless the part scrolls by itself", async () => {
  const view = await open(origin, { size: "phone" });
  await view.goto("/wide");
  await expect(view.assertFits("wide")).rejects.toThrow(/2000px/);
  await view.goto("/scrolls");
  await view.assertFits("scrolls");
});

test.for([
  ["/inline", /Content Security Policy/],
  ["/elsewhere", /asked another origin: http:\/\/127\.0\.0\.1:9/],
  ["/throws", /not caught: Error: by itself/],
  ["/asks", /a dialog of the browser: 1/],
] as const)("the guard notices what happens on %s", async ([at, fault]) => {
  const view = await open(origin);
  await view.page.goto(at);
  expect(() => view.guard.assertNone()).toThrow(fault);
  view.guard.allow(/./);
  view.guard.assertNone();
});

test("whatever a page keeps is found", async () => {
  const view = await open(origin);
  await view.page.goto("/keeps");
  await view.sees("Keeps");
  const all = [...(await view.traces()).values()].join("\n");
  for (const place of ["session", "local", "cookie", "history", "field", "said", "asked", "source"])
    expect(all).toContain(`in-${place}`);
});

test("what is not there is missed by name", async () => {
  const view = await open(origin);
  expect(view).toBeInstanceOf(View);
  await view.goto("/good");
  await expect(view.sees("Nowhere", 100)).rejects.toThrow(/not within 100 ms: seen: Nowhere/);
  await expect(view.misses("Go", 100)).rejects.toThrow(/not within 100 ms: not seen: Go/);
});
