// The console as people use it: a real Chromium, a real server behind tokens, a real PostgreSQL.
import { expect, test } from "vitest";
import { PICTURES, THEMES, useChromium } from "../../src/console/index.ts";
import type { View } from "../../src/console/view.ts";
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

test("every page passes axe in both themes, fits a phone, and is pictured", async () => {
  await stage().call("TagService/CreateTag", { tag: { name: "orders", segment: {} } });
  for (const theme of THEMES) {
    const view = await opened("", undefined, { theme });
    for (const [name, address] of PAGES) {
      await view.page.setViewportSize({ width: 1_280, height: 800 });
      await view.goto(`/console/${address}`);
      await view.sees(view.page.getByRole("heading", { level: 1 }));
      await view.misses("Loading…");
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
  ["audit", "audit"],
  ["tokens", "tokens"],
  ["not-found", "nowhere"],
] as const;
