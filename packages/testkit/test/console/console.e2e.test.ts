// The console as people use it: a real Chromium, a real server behind tokens, a real PostgreSQL.
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { PICTURES, THEMES, useChromium } from "../../src/console/index.ts";
import type { View } from "../../src/console/view.ts";
import { newerBuild } from "../../src/fleet/newer-build.ts";
import { until } from "../../src/fleet/until.ts";
import { signIn, useStage } from "./stage.ts";

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
  expect(view.address).toBe("/console/audit?outcome=change");
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
  for (const name of names)
    await stage().call("TagService/CreateTag", { tag: { name, segment: {} } });
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
  await view.sees("idmint audit list --kind change --resource tag/audited-0");
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
  await view.sees("idmint token create orders --issue 'orders.*' --expires 30d");
  await view.assertAccessible("the form of a token");
  await page.getByRole("button", { name: "Make the token" }).click();
  const shown = await view.sees(page.locator("code.secret"));
  const secret = (await shown.textContent()) ?? "";
  expect(secret).toMatch(/^idm_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  await view.assertAccessible("a token that is shown");
  // It works: whoever holds it is the principal that was typed.
  expect((await stage().call("AccessService/GetAccess", {}, secret))["principal"]).toBe("orders");
  const id = secret.slice(4, 20);
  await page.getByRole("button", { name: "Close" }).click();
  await view.sees(page.getByRole("button", { name: `Revoke the token ${id} of orders` }));
  await expectNowhere(view, secret);

  await page.getByRole("button", { name: `Revoke the token ${id} of orders` }).click();
  const revoke = page.getByRole("dialog").getByRole("button", { name: "Revoke" });
  expect(await revoke.isDisabled()).toBe(true);
  await page.getByLabel("Type orders to confirm").fill("order");
  expect(await revoke.isDisabled()).toBe(true);
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
  await stage().call("TagService/CreateTag", { tag: { name: "looked-at", segment: {} } });
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
];

/** Names of the buttons in the content of a page, when it shows what it has. */
async function buttonsOf(view: View, address: string): Promise<readonly string[]> {
  await view.goto(`/console/${address}`);
  await shown(view);
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
  return HARMLESS.some((one) => one.test(button));
}

test("every page passes axe in both themes, fits a phone, and is pictured", async () => {
  await stage().call("TagService/CreateTag", { tag: { name: "orders", segment: {} } });
  for (const theme of THEMES) {
    const view = await opened("", undefined, { theme });
    for (const [name, address] of PAGES) {
      await view.page.setViewportSize({ width: 1_280, height: 800 });
      await view.goto(`/console/${address}`);
      await shown(view);
      await view.assertAccessible(`${name} (${theme})`);
      await view.picture(`${name}-${theme}`);
      await view.page.setViewportSize({ width: 390, height: 844 });
      await view.assertFits(`${name} on a phone`);
      await view.picture(`${name}-${theme}-phone`);
    }
  }
  console.log(`Pictures of the console: ${PICTURES}`);
});

/** Every page, by the name of its pictures. */
const PAGES = [
  ["overview", ""],
  ["nodes", "nodes"],
  ["workers", "workers"],
  ["audit", "audit"],
  ["tokens", "tokens"],
  ["not-found", "nowhere"],
] as const;
