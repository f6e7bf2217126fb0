// The console as people use it: a real Chromium, a real server behind tokens, a real PostgreSQL.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SNOWFLAKE_PRESETS } from "@idmint/core";
import { readConfig } from "@idmint/server";
import type { Locator } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { servesConsole } from "../../../server/src/config/http.ts";
import { selfSigned } from "../../src/certificate.ts";
import { CONTRAST, PICTURES, SIZES, THEMES, useChromium } from "../../src/console/index.ts";
import type { View } from "../../src/console/view.ts";
import { newerBuild } from "../../src/fleet/newer-build.ts";
import { until } from "../../src/fleet/until.ts";
import { isLong } from "../fleet-support.ts";
import { signIn, typed, useStage } from "./stage.ts";

const open = useChromium();
const stage = useStage({ IDMINT_LOG_LEVEL: "debug" });

/** A view of the console, signed in. */
async function opened(
  address: string,
  token: string = stage().tokens.admin,
  options: Parameters<typeof open>[1] = {},
): Promise<View> {
  const view = await open(stage().origin, options);
  await view.goto(`/console/${address}`);
  await signIn(view, token);
  return view;
}

test("a wrong token is refused in words, and a right one leads to the view that was asked for", async () => {
  const view = await open(stage().origin);
  view.guard.allow(/status of 401/);
  await view.goto("/console/audit?outcome=change");
  await view.page
    .getByLabel("Token", { exact: true })
    .fill(`idm_0123456789abcdef_${"A".repeat(43)}`);
  await view.page.keyboard.press("Enter");
  await view.sees(/does not know this token/);
  await view.assertAccessible("a refused token");
  await signIn(view, stage().tokens.admin);
  await view.sees(view.page.getByRole("heading", { name: "Audit", level: 1 }));
  await until(
    "the address is that of the view",
    () => view.address === "/console/audit?outcome=change",
  );
});

test("signing out forgets the token, also for a reload and for the way back", async () => {
  const view = await opened("tokens");
  await view.sees("guest");
  await view.page.getByRole("button", { name: "Sign out" }).click();
  await view.sees(view.page.getByRole("button", { name: "Sign in" }));
  await view.page.reload();
  await view.sees(view.page.getByRole("button", { name: "Sign in" }));
  await view.misses("guest");
  for (const [where, text] of await view.traces()) {
    expect(text, where).not.toContain(stage().tokens.admin);
  }
});

test("the audit trail is filtered, paged and read, and its URL brings the same view back", async () => {
  const names = Array.from({ length: 60 }, (_, at) => `audited-${at}`);
  const make = (name: string): Promise<unknown> =>
    stage().call("TagService/CreateTag", { tag: { name, segment: {} } });
  // The first ones are older than all others, and so on the second page.
  for (const name of names.slice(0, 10)) await make(name);
  await Promise.all(names.slice(10).map(make));
  const { tag } = await stage().call("TagService/GetTag", { name: "audited-0" });
  const { etag } = tag as { readonly etag: string };
  const change = { name: "audited-0", description: "<b>new</b>", etag };
  await stage().call("TagService/UpdateTag", { tag: change, updateMask: "description" });
  await stage().ask("TagService/PauseTag", { name: "audited-1" }, stage().tokens.observer);

  const view = await opened("audit");
  const { page } = view;
  const rows = page.getByRole("row");
  await view.sees("audited-0");
  expect(await rows.count()).toBe(51);
  await page.getByRole("link", { name: "Older" }).click();
  await view.sees(page.getByRole("link", { name: "Newest" }));
  await view.sees("tag/audited-3");
  await page.goBack();
  await view.misses(page.getByRole("link", { name: "Newest" }));

  await page.getByLabel("Tag", { exact: true }).fill("audited-0");
  await page.getByLabel("Outcome").selectOption("Changes");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await until("two changes are listed", async () => (await rows.count()) === 3);
  const listed = await run(await cliLineOf(view), "--json");
  expect((JSON.parse(listed) as { events: unknown[] }).events).toHaveLength(2);
  await page.getByText("Details").nth(1).click();
  await view.sees(page.locator("ins", { hasText: "<b>new</b>" }));
  const shared = await opened(view.address.replace("/console/", ""));
  await shared.sees(shared.page.locator("ins", { hasText: "<b>new</b>" }));
  expect(await shared.page.getByRole("row").count()).toBeGreaterThan(3);

  await page.getByLabel("Outcome").selectOption("Refused: no right");
  await page.getByLabel("Tag", { exact: true }).fill("audited-1");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await view.sees("PERMISSION_DENIED");
  await view.sees("guest");
});

test("a token is made, shown once, replaced and revoked, and its secret is left nowhere", async () => {
  const view = await opened("tokens");
  const { page } = view;
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByLabel("Principal").last().fill("orders");
  await page.getByLabel("Tags").fill("orders.*");
  await page.getByLabel("Valid for").fill("30d");
  const byCommand = (await run(await cliLineOf(view, page.getByRole("dialog")))).trim();
  expect((await stage().call("AccessService/GetAccess", {}, byCommand))["rights"]).toEqual([
    { role: "ROLE_ISSUE", tags: "orders.*" },
  ]);
  await view.assertAccessible("the form of a token");
  await page.getByRole("button", { name: "Make the token" }).click();
  const shown = await view.sees(page.locator("code.secret"));
  const secret = (await shown.textContent()) ?? "";
  expect(secret).toMatch(/^idm_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  await view.assertAccessible("a token that is shown");
  // It works: whoever holds it is the principal that was typed.
  expect((await stage().call("AccessService/GetAccess", {}, secret))["principal"]).toBe("orders");
  const id = secret.slice(4, 20);
  // Leaving the page hides it, also from a page that the browser keeps for the way back.
  await page.evaluate(`dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }))`);
  await view.misses(page.locator("code.secret"));
  await view.sees(page.getByRole("button", { name: `Revoke the token ${id} of orders` }));
  await expectNowhere(view, secret);

  await page.getByRole("button", { name: `Revoke the token ${id} of orders` }).click();
  const revoke = page.getByRole("dialog").getByRole("button", { name: "Revoke" });
  expect(await revoke.isDisabled()).toBe(true);
  await page.getByLabel("Type orders to confirm").fill("order");
  expect(await revoke.isDisabled()).toBe(true);
  const line = await cliLineOf(view, page.getByRole("dialog"));
  await run(line.replace(id, byCommand.slice(4, 20)), "--yes");
  expect((await stage().ask("AccessService/GetAccess", {}, byCommand)).status).toBe(401);
  await page.getByLabel("Type orders to confirm").fill("orders");
  await revoke.click();
  await view.sees(/No server that reaches the store believes it from .* on/);
  await view.misses(page.getByRole("button", { name: `Revoke the token ${id} of orders` }));
  expect((await stage().ask("AccessService/GetAccess", {}, secret)).status).toBe(401);
  // Neither "back" to the dialog nor a reload of its address brings the secret again.
  await page.goBack();
  await page.reload();
  await view.sees(page.getByRole("heading", { name: "Tokens", level: 1 }));
  await expectNowhere(view, secret);
});

/** The command that a view shows. */
async function cliLineOf(view: View, part: Locator = view.page.locator("main")): Promise<string> {
  const code = part.locator(".cli code");
  await until("one command is shown", async () => (await code.count()) === 1);
  return (await code.textContent()) ?? "";
}

/** What a command prints that is typed into a shell, with what was set up before. */
async function run(line: string, ...more: readonly string[]): Promise<string> {
  const env = { IDMINT_ADDRESS: stage().server.address, IDMINT_TOKEN: stage().tokens.admin };
  return typed([line, ...more].join(" "), env);
}

/** The code blocks of docs/console.md in a language. */
function blocksOf(language: string): readonly string[] {
  const text = readFileSync(path.join(CONSOLE, "../../docs/console.md"), "utf8");
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)];
  return blocks.flatMap(([, its, code = ""]) => (its === language ? [code] : []));
}

test("docs/console.md: its tokens are made as printed, and a server takes its configuration", async () => {
  const { folder } = stage().fleet;
  const made = (await run(`cd ${folder}\n${blocksOf("sh").join("")}cat lin.token`))
    .trim()
    .split("\n");
  const roles = await Promise.all(
    made.map(async (text) => (await stage().call("AccessService/GetAccess", {}, text))["rights"]),
  );
  expect(roles).toEqual([
    [{ role: "ROLE_OBSERVE", tags: "*" }],
    [{ role: "ROLE_ADMIN", tags: "*" }],
  ]);
  const { cert, key } = selfSigned("localhost");
  const [yaml = ""] = blocksOf("yaml");
  writeFileSync(path.join(folder, "tls.crt"), cert);
  writeFileSync(path.join(folder, "tls.key"), key);
  const file = path.join(folder, "idmint.yaml");
  writeFileSync(
    file,
    `${yaml.replaceAll("/etc/idmint", folder)}store:\n  url: sqlite:${folder}/x.db\n`,
  );
  const { config, violations } = readConfig({ env: { IDMINT_CONFIG: file } });
  expect(violations).toEqual([]);
  expect(config === undefined ? false : servesConsole(config)).toBe(true);
  await stage().fleet.cli("config", "check", "--config", file);
});

/** Everywhere that a page leaves something, and everything that the server said. */
async function expectNowhere(view: View, secret: string): Promise<void> {
  const own = secret.split("_").slice(2).join("_");
  for (const [where, text] of await view.traces()) expect(text, where).not.toContain(own);
  const { stdout, stderr } = stage().server.process;
  expect(stdout + stderr).not.toContain(own);
}

test("a server that is killed while the page is open comes back without a reload", async () => {
  const view = await opened("nodes");
  view.guard.allow(
    /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 5\d\d/,
  );
  await view.page.evaluate(`window.isSamePage = true`);
  await view.sees("Alive");
  await stage().server.kill();
  await view.sees(/The server does not answer since/);
  // What was there stays to be read.
  await view.sees("Alive");
  await stage().server.start();
  await view.misses(/The server does not answer since/);
  await view.sees("Alive");
  expect(await view.page.evaluate(`window.isSamePage`)).toBe(true);
});

test("a server that answers slowly is said to, and then what it answers is shown", async () => {
  const view = await opened("");
  await view.sees("Serving");
  stage().server.process.signal("SIGSTOP");
  try {
    await view.page.getByRole("link", { name: "Audit" }).click();
    await view.sees("The server takes its time…");
    await view.assertAccessible("a slow server");
    await view.picture("slow-light");
  } finally {
    stage().server.process.signal("SIGCONT");
  }
  await view.sees(view.page.getByRole("row").nth(1));
  await view.misses("The server takes its time…");
});

test("times are shown in UTC or as here, and mean the same in a link", async () => {
  const view = await opened("tokens", undefined, { timeZone: "Asia/Tokyo" });
  const { page } = view;
  const made = async (): Promise<string> =>
    (await page.getByRole("row", { name: /ops/ }).getByRole("cell").nth(2).textContent()) ?? "";
  await view.sees(page.getByRole("row", { name: /ops/ }));
  const inTokyo = await made();
  await page.getByText("Appearance").click();
  await page.getByLabel("Times").selectOption("UTC");
  await until("the time is another one", async () => (await made()) !== inTokyo);
  const hours = (Date.parse(inTokyo) - Date.parse(await made())) / 3_600_000;
  expect(hours).toBe(9);

  await view.goto("/console/audit?since=2026-01-02T03:04:05Z");
  await until("UTC", async () => (await page.getByLabel("From (UTC)").count()) === 1);
  expect(await page.getByLabel("From (UTC)").inputValue()).toBe("2026-01-02T03:04:05");
  await page.getByText("Appearance").click();
  await page.getByLabel("Times").selectOption("Local");
  await until("local", async () => (await page.getByLabel("From (Local)").count()) === 1);
  expect(await page.getByLabel("From (Local)").inputValue()).toBe("2026-01-02T12:04:05");
  await view.sees(/--since 2026-01-02T03:04:05\.000Z/);
});

test("what was chosen is there after a reload, at once", async () => {
  const view = await opened("");
  const { page } = view;
  await page.getByText("Appearance").click();
  await page.getByLabel("Language").selectOption("中文");
  await view.sees(page.getByRole("heading", { name: "总览", level: 1 }));
  await page.getByLabel("主题").selectOption("深色");
  expect(await groundOf(view)).toBe(DARK);
  await page.addInitScript(WATCH);
  // So that something is drawn before the console runs, as on a slow network.
  await page.route("**/assets/*.js", async (route) => {
    await pause(500);
    await route.continue();
  });
  await page.reload();
  await view.sees(page.getByRole("heading", { name: "总览", level: 1 }));
  // Every picture that was drawn on the way is like the last one.
  const drawn = await page.evaluate<{ grounds: string[]; titles: string[]; langs: string[] }>(
    "seen",
  );
  expect(drawn.grounds.filter((ground) => ground !== DARK)).toEqual([]);
  expect(drawn.titles.filter((title) => title !== "总览")).toEqual([]);
  expect(await page.evaluate("document.documentElement.lang")).toBe("zh-Hans");
  await view.assertAccessible("in Chinese");
});

const DARK = "rgb(16, 20, 23)";
const GROUND = "getComputedStyle(document.documentElement).backgroundColor";

async function groundOf(view: View): Promise<string> {
  return view.page.evaluate<string>(GROUND);
}

/** Remembers what each picture of a page that loads would show. Nothing is drawn before there is a body. */
const WATCH = `
  window.seen = { grounds: [], titles: [] };
  const look = () => {
    if (document.body !== null) seen.grounds.push(${GROUND});
    const title = document.querySelector("h1")?.textContent;
    if (title !== undefined) seen.titles.push(title);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);`;

test("what an address says is text, whatever it says", async () => {
  const view = await opened("");
  view.guard.allow(/status of 400/);
  const evil = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;
  const query = new URLSearchParams([
    ["principal", evil],
    ["about", evil],
    ["page", evil],
    ["event", "constructor"],
    ["outcome", "__proto__"],
    ["__proto__", evil],
    ["__proto__[polluted]", "yes"],
    ["q", evil],
    ["make", evil],
    ["revoke", "__proto__"],
  ]).toString();
  for (const page of [
    "",
    "nodes",
    "audit",
    "tokens",
    encodeURIComponent(evil),
    "__proto__",
    "%E0%A4%A",
  ]) {
    await view.goto(`/console/${page}?${query}`);
    await view.sees(view.page.getByRole("heading", { level: 1 }));
    await view.misses("Loading…");
    expect(await view.page.evaluate("({}).polluted"), page).toBeUndefined();
    expect(await view.page.locator("img").count(), page).toBe(0);
  }
  await view.goto(`/console/audit?${query}`);
  await view.sees(`idmint audit list --principal '${evil}' --resource '${evil}'`);
});

test("no page of another origin shows the console in a frame", async () => {
  const elsewhere = createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    const frames = [stage().origin, `http://${request.headers.host ?? ""}/own`];
    const html = frames.map((origin) => `<iframe src="${origin}/console/"></iframe>`).join("");
    response.end(request.url === "/" ? html : "its own frame");
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void elsewhere.close());
  const { port } = elsewhere.address() as AddressInfo;
  const view = await open(`http://127.0.0.1:${port}`);
  view.guard.allow(/asked another origin|status of 403|frame/);
  await view.page.goto("/");
  const [, ...frames] = await Promise.all(view.page.frames().map((frame) => frame.content()));
  expect(frames).toHaveLength(2);
  expect(frames.filter((html) => html.includes("its own frame"))).toHaveLength(1);
  expect(frames.filter((html) => html.includes('id="app"'))).toEqual([]);
});

test("servers of two releases are told apart", async () => {
  const newer = newerBuild(path.join(stage().fleet.folder, "newer"), "99.0.0");
  const other = await stage().fleet.anotherServer("newer");
  other.build = newer;
  await other.start();
  onTestFinished(async () => {
    await other.kill();
    other.api[Symbol.dispose]();
  });
  const view = await opened("nodes");
  await view.sees(view.page.getByRole("cell", { name: "99.0.0" }));
  await view.sees(/99\.0\.0 \(1\)/);
  await view.assertAccessible("two releases");
  await view.picture("two-releases-light");
});

test("who may only look sees no button that the server would refuse", async () => {
  await haveTags();
  const admin = await opened("");
  const observer = await opened("", stage().tokens.observer);
  observer.guard.allow(/status of 403/);
  const tried = new Set<string>();
  for (const [name, address] of PAGES) {
    const seen = await buttonsOf(observer, address);
    for (const button of seen) expect(isHarmless(button), `${name}: ${button}`).toBe(true);
    const more = (await buttonsOf(admin, address)).filter((button) => !seen.includes(button));
    for (const button of more) {
      if (isHarmless(button)) continue;
      const action = ACTIONS.find(([pattern]) => pattern.test(button));
      expect(action, `${name}: nobody says what ${button} calls`).toBeDefined();
      const [, method = "", request = {}] = action ?? [];
      tried.add(method);
      const { status, body } = await stage().ask(method, request, stage().tokens.observer);
      expect([status, body["code"]], button).toEqual([403, "permission_denied"]);
      // It names a method that is there, for who may.
      const allowed = await stage().ask(method, request);
      expect(["permission_denied", "unimplemented"], button).not.toContain(allowed.body["code"]);
    }
  }
  // Only a server that is gone can be forgotten, and another test may have left one.
  const always = ACTIONS.map(([, method]) => method).filter((one) => !one.endsWith("ForgetNode"));
  for (const method of always) expect(tried).toContain(method);
});

/** What somebody may press who only looks. */
const HARMLESS = [
  /^Copy$/,
  /^Show$/,
  /^Show all$/,
  /^Older$/,
  /^Newest$/,
  /^Next page$/,
  /^First page$/,
  /^Try again$/,
  /^Look up$/,
  /^\d+ minutes?$/,
];

/** Every other button of a page: what it calls. The requests change nothing, whoever makes them. */
const ACTIONS: readonly (readonly [button: RegExp, method: string, request: object])[] = [
  [/^Drain/, "NodeService/DrainNode", { node: "nobody:1" }],
  [/^Forget/, "NodeService/ForgetNode", { nodeId: "nobody" }],
  [/^Weight/, "NodeService/SetNodeWeight", { node: "nobody:1", weight: 1 }],
  [
    /^(New token|Replace the token)/,
    "AccessService/CreateToken",
    { principal: "x", rights: [{ role: "ROLE_ISSUE", tags: "*" }], validateOnly: true },
  ],
  [/^Revoke the token/, "AccessService/RevokeToken", { tokenId: "0123456789abcdef" }],
  [
    /^(New tag|Create)$/,
    "TagService/CreateTag",
    { tag: { name: "x", segment: {} }, validateOnly: true },
  ],
  [
    /^Edit$/,
    "TagService/UpdateTag",
    { tag: { name: "looked-at" }, updateMask: "description", validateOnly: true },
  ],
  [/^Pause$/, "TagService/PauseTag", { name: "looked-at", validateOnly: true }],
  [/^Advance$/, "TagService/AdvanceTag", { name: "looked-at", floor: "9", validateOnly: true }],
  [/^Delete$/, "TagService/DeleteTag", { name: "looked-at", validateOnly: true }],
];

/** Goes to a view as a link of the console does, without a reload. */
async function visit(view: View, address: string): Promise<void> {
  await view.page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(`/console/${address}`)}); dispatchEvent(new PopStateEvent("popstate"));`,
  );
  await shown(view);
}

/** Names of the buttons in the content of a page, when it shows what it has. */
async function buttonsOf(view: View, address: string): Promise<readonly string[]> {
  await visit(view, address);
  return view.page.evaluate<string[]>(BUTTONS);
}

const BUTTONS = `[...document.querySelectorAll("main button, main a.button")]
  .filter((one) => one.checkVisibility())
  .map((one) => (one.getAttribute("aria-label") ?? one.textContent).trim())`;

/** Waits until a page shows what the server told it, and what the caller may. */
async function shown(view: View): Promise<void> {
  await view.sees(view.page.getByRole("heading", { level: 1 }));
  await view.sees(view.page.getByRole("banner").getByText(/^(ops|guest)$/));
  await view.misses("Loading…");
}

function isHarmless(button: string): boolean {
  // A layout fills a form in.
  return HARMLESS.some((one) => one.test(button)) || Object.hasOwn(SNOWFLAKE_PRESETS, button);
}

test("a tag is made, paused and resumed by the keyboard alone", async () => {
  const view = await open(stage().origin);
  view.guard.allow(/status of 401/);
  await view.goto("/console/");
  const { keyboard } = view.page;
  await tabTo(view, "Token");
  await keyboard.type(stage().tokens.admin);
  await keyboard.press("Enter");
  await view.sees(view.page.getByRole("button", { name: "Sign out" }));
  await tabTo(view, "Tags");
  await keyboard.press("Enter");
  await view.sees(view.page.getByRole("heading", { name: "Tags", level: 1 }));
  await tabTo(view, "New tag");
  await keyboard.press("Enter");
  await view.sees(view.page.getByRole("heading", { name: "New tag", level: 1 }));
  await tabTo(view, "Name");
  await keyboard.type("by-keyboard");
  await tabTo(view, "Create");
  await keyboard.press("Enter");
  await view.sees("Issues ids");
  for (const [verb, state] of [
    ["Pause", "Paused"],
    ["Resume", "Issues ids"],
  ] as const) {
    await tabTo(view, verb);
    await keyboard.press("Enter");
    await view.sees(view.page.getByRole("dialog"));
    await tabTo(view, "Type by-keyboard to confirm");
    await keyboard.type("by-keyboard");
    await keyboard.press("Enter");
    await view.misses(view.page.getByRole("dialog"));
    await view.sees(view.page.getByText(state, { exact: true }));
  }
  const { tag } = await stage().call("TagService/GetTag", { name: "by-keyboard" });
  expect(tag).toMatchObject({ state: "TAG_STATE_ACTIVE", epoch: "3" });
});

/** More than any page has. */
const MOST_STOPS = 80;

/** Goes to a control by the key Tab, as somebody without a mouse; whatever has the focus on the way must be seen to have it. */
async function tabTo(view: View, name: string): Promise<void> {
  const passed: string[] = [];
  await until(`${name} is there`, async () =>
    (await view.page.evaluate<string[]>(NAMES)).includes(name),
  );
  for (let stops = 0; stops < MOST_STOPS; stops++) {
    await view.page.keyboard.press("Tab");
    const [at, isSeen] = await view.page.evaluate<[string, boolean]>(FOCUSED);
    passed.push(at);
    const isShown = async (): Promise<boolean> =>
      (await view.page.evaluate<[string, boolean]>(FOCUSED))[1];
    if (!isSeen) await until(`the focus on ${at} is seen`, isShown);
    if (at === name) return;
  }
  throw new Error(`Tab does not lead to ${name}: ${passed.join(" > ")}`);
}

const NAME_OF = `(one) => (one.getAttribute("aria-label") ?? one.labels?.[0]?.textContent ?? one.textContent ?? "").trim()`;
const NAMES = `[...document.querySelectorAll("a, button, input, select")].map(${NAME_OF})`;
const FOCUSED = `(() => {
  const one = document.activeElement;
  if (one === null || one === document.body || one === document.documentElement) return ["", true];
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  return [(${NAME_OF})(one), outlineStyle !== "none" && parseFloat(outlineWidth) >= 1];
})()`;

test("the first view is there soon", async () => {
  const { admin } = stage().tokens;
  const times: number[] = [];
  for (let i = 0; i < (isLong ? 9 : 1); i++) {
    const view = await open(stage().origin);
    await view.page.addInitScript(
      `sessionStorage.setItem("idmint.token", "${admin}");${FIRST_VIEW}`,
    );
    await view.goto("/console/");
    await until("the first view", () => view.page.evaluate<boolean>("'firstView' in window"));
    times.push(await view.page.evaluate<number>("firstView"));
  }
  const median = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Infinity;
  console.log(`First view of the console: ${median.toFixed(0)} ms (median of ${times.length})`);
  // Nothing is judged by its time on a machine that does much else.
  if (isLong) expect(median).toBeLessThan(2_000);
});

/** Notes when the overview shows what the server told it, in milliseconds since the address was gone to. */
const FIRST_VIEW = `
  const look = () => {
    if (document.querySelector("main table tbody tr") === null) requestAnimationFrame(look);
    else window.firstView = performance.now();
  };
  requestAnimationFrame(look);`;

test("no page is left out of the tables of this file", () => {
  const source = readFileSync(path.join(CONSOLE, "src/pages/pages.ts"), "utf8");
  const paths = [...source.matchAll(/\{ path: "([^"]*)"/g)].map(([, found = ""]) => found);
  expect(paths.length).toBeGreaterThan(5);
  const patterns = paths.map((one) => new RegExp(`^${one.replaceAll(/:\w+/g, "[^/?]+")}(\\?.*)?$`));
  for (const pattern of patterns) {
    expect(
      PAGES.some(([, address]) => pattern.test(address)),
      String(pattern),
    ).toBe(true);
  }
});

const CONSOLE = path.resolve(import.meta.dirname, "../../../console");

/** What the pages show. Making it again changes nothing. */
async function haveTags(): Promise<void> {
  const segment = { name: "looked-at", description: "ids of orders", segment: {} };
  await stage().ask("TagService/CreateTag", { tag: segment });
  await stage().ask("TagService/CreateTag", { tag: { name: "snow", snowflake: {} } });
  await stage().ask("TagService/CreateTag", { tag: { name: "halted", segment: {} } });
  await stage().ask("TagService/PauseTag", { name: "halted" });
}

test("every page passes axe in both themes, fits a phone, and is pictured", async () => {
  await haveTags();
  const view = await opened("");
  // The pages of tags have a test of their own.
  const pages = PAGES.filter(([, at]) => isLong || !/^(tags|new-tag|ids)/.test(at));
  for (const [name, address] of pages) {
    for (const theme of THEMES) {
      await view.page.emulateMedia({ colorScheme: theme });
      await view.page.setViewportSize(SIZES.desk);
      if (theme === "light") await visit(view, address);
      // What a theme changes are colours.
      await view.assertAccessible(
        `${name} (${theme})`,
        isLong || theme === "light" ? [] : CONTRAST,
      );
      if (isLong || theme === "light") await view.picture(`${name}-${theme}`);
      if (!isLong && theme === "light") continue;
      await view.page.setViewportSize(SIZES.phone);
      await view.assertFits(`${name} on a phone`);
      await view.picture(`${name}-${theme}-phone`);
    }
  }
  console.log(`Pictures of the console: ${PICTURES}`);
});

/** Every page, by the name of its pictures. */
const PAGES = [
  ["overview", ""],
  ["tags", "tags"],
  ["tag", "tags/looked-at"],
  ["tag-ledger", "tags/looked-at?view=ledger"],
  ["new-tag", "new-tag"],
  ["new-snowflake", "new-tag?kind=snowflake"],
  ["ids", "ids"],
  ["nodes", "nodes"],
  ["workers", "workers"],
  ["leases", "workers/snow"],
  ["audit", "audit"],
  ["tokens", "tokens"],
  ["not-found", "nowhere"],
] as const;
