// The tags' pages as people use them: a real Chromium, a real server with Redis and ticket databases, a real PostgreSQL.
import { afterAll, beforeAll, expect, test } from "vitest";
import { THEMES, useChromium } from "../../src/console/index.ts";
import type { View } from "../../src/console/view.ts";
import { runCli } from "../../src/fleet/child.ts";
import { until } from "../../src/fleet/until.ts";
import { RedisServer } from "../../src/redis/index.ts";
import { useStage } from "./stage.ts";

/** Tags of the list that is searched and paged: as many as the console is made for, when there is time. */
const IS_LONG = process.env["IDMINT_LONG"] === "1";
const MANY = IS_LONG ? 10_000 : 60;

const open = useChromium();
const redis: RedisServer[] = [];
afterAll(async () => {
  for (const one of redis) await one.stop();
});
const stage = useStage(async (postgres) => {
  redis.push(await RedisServer.start(), await RedisServer.start());
  const { url } = await postgres.createDatabase();
  const urls = redis.map((one, at) => `${at === 0 ? "a" : "b"}=${one.url}`);
  const env = { IDMINT_REDIS_URLS: urls.join(","), IDMINT_TICKET_URLS: `one=${url}` };
  expect(await runCli(["ticket", "migrate"], env)).toMatchObject({ code: 0 });
  return env;
});

/** Of somebody who may change tags and take ids of them. */
let owner = "";
beforeAll(async () => {
  const words = ["token", "create", "owner", "--admin", "*", "--issue", "*", "--store"];
  owner = await believed(await stage().fleet.cli(...words));
});

/** A token that was made in the store, once the server has heard of it. */
async function believed(printed: string): Promise<string> {
  const token = printed.trim();
  const isKnown = async (): Promise<boolean> =>
    (await stage().ask("AccessService/GetAccess", {}, token)).status === 200;
  await until("the token is believed", isKnown);
  return token;
}

/** A view of the console of somebody who signed in before, in this tab. */
async function opened(
  address: string,
  token: string = owner,
  options: Parameters<typeof open>[1] = {},
): Promise<View> {
  const view = await open(stage().origin, options);
  await view.page.addInitScript(`sessionStorage.setItem("idmint.token", "${token}")`);
  await view.goto(`/console/${address}`);
  await view.sees(view.page.getByRole("button", { name: "Sign out" }));
  return view;
}

type Tag = Readonly<Record<string, unknown>> & { readonly etag: string };

async function tagOf(name: string): Promise<Tag> {
  const { tag } = await stage().call("TagService/GetTag", { name });
  return tag as Tag;
}

async function make(tag: object): Promise<void> {
  await stage().call("TagService/CreateTag", { tag });
}

/** Opens a dialog of a tag's page. */
async function ask(view: View, verb: string): Promise<void> {
  await view.page.getByRole("button", { name: verb, exact: true }).click();
  await view.sees(view.page.getByRole("dialog"));
}

/** Does what a dialog asks for, once its condition is typed. */
async function confirm(view: View, name: string, verb: string): Promise<void> {
  const dialog = view.page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: verb, exact: true });
  expect(await button.isDisabled()).toBe(true);
  await dialog.getByLabel(`Type ${name} to confirm`).fill(name);
  await button.click();
  await view.misses(dialog);
}

/** A tag of every kind: what is typed into its form, and what the server then has. */
const KINDS = {
  segment: [{ Min: "500", "Hold for": "20m" }, { segment: { min: 500, holdFor: "1200s" } }],
  sequence: [
    { Period: "day", "Time zone": "Asia/Shanghai" },
    { sequence: { period: "PERIOD_UNIT_DAY", timeZone: "Asia/Shanghai" } },
  ],
  "redis-snowflake": [{ Shard: "60" }, { redisSnowflake: { shard: 60 } }],
  ticket: [{ Slots: "12" }, { ticket: { slots: 12 } }],
  snowflake: [{ "Worker bits": "5" }, { snowflake: { layout: { timeBits: 41, workerBits: 5 } } }],
  uuid: [{ Version: "7" }, { uuid: { version: 7 } }],
  "object-id": [
    { Variant: "machine-process" },
    { objectId: { variant: "OBJECT_ID_VARIANT_MACHINE_PROCESS" } },
  ],
} as const;

test("a tag of every kind is made by its form, by the keyboard's Enter", async () => {
  const view = await opened("tags");
  const { page } = view;
  for (const [kind, [typed, made]] of Object.entries(KINDS)) {
    await page.getByRole("link", { name: "Tags" }).click();
    await page.getByRole("link", { name: "New tag" }).click();
    await page.getByLabel("Kind", { exact: true }).selectOption(kind);
    await page.getByLabel("Name", { exact: true }).fill(`form-${kind}`);
    for (const [label, text] of Object.entries(typed)) {
      const field = page.getByLabel(label, { exact: true });
      const isChoice = (await field.locator("option").count()) > 0;
      await (isChoice ? field.selectOption(text) : field.fill(text));
    }
    await view.sees(new RegExp(`idmint tag create form-${kind} --kind ${kind}`, "u"));
    await page.getByLabel("Name", { exact: true }).press("Enter");
    await view.sees(page.getByRole("heading", { name: `form-${kind}`, level: 1 }));
    await view.sees("Issues ids");
    expect(await tagOf(`form-${kind}`)).toMatchObject(made);
  }
});

test("the line beside a form makes the same tag on the command line", async () => {
  const view = await opened("new-tag?kind=snowflake&name=by-line&description=it%27s+%3Cb%3E");
  await view.page.getByRole("button", { name: "js53" }).click();
  await view.page.getByLabel("Clock wait").fill("7ms");
  const line = await view.sees(/^idmint tag create by-line/u);
  const text = (await line.textContent()) ?? "";
  await view.page.getByRole("button", { name: "Create" }).click();
  await view.sees(view.page.getByRole("heading", { name: "by-line", level: 1 }));
  const before = await tagOf("by-line");
  expect(before).toMatchObject({ description: "it's <b>", snowflake: { clockWait: "0.007s" } });
  // Making it again with other settings would be refused.
  const words = text
    .slice("idmint ".length)
    .match(/'(?:[^']|'\\'')*'|\S+/gu)
    ?.map((word) => word.replaceAll("'\\''", "\0").replaceAll("'", "").replaceAll("\0", "'"));
  const { address } = stage().server;
  await stage().fleet.cli(...(words ?? []), "--token", owner, "--address", address);
  expect(await tagOf("by-line")).toEqual(before);
});

test("what is wrong stands at its field, in the words of the server, and the first one has the focus", async () => {
  const view = await opened("new-tag?kind=segment&name=a+b");
  view.guard.allow(/status of 400/u);
  const { page } = view;
  await page.getByLabel("Min", { exact: true }).fill("70");
  await page.getByLabel("Max", { exact: true }).fill("60");
  await page.getByLabel("Hold for", { exact: true }).fill("soon");
  await view.sees("Must be a time such as 500ms, 90s, 15m or 24h.");
  await page.getByRole("button", { name: "Create" }).click();
  expect(await page.getByLabel("Hold for").getAttribute("aria-invalid")).toBe("true");
  await page.getByLabel("Hold for", { exact: true }).fill("200h");
  await page.getByRole("button", { name: "Create" }).click();
  const { body } = await stage().ask("TagService/CreateTag", {
    tag: { name: "a b", segment: { min: 70, max: 60, holdFor: "720000s" } },
  });
  const said = JSON.stringify(body);
  for (const [label, path] of Object.entries({
    Name: "tag.name",
    Min: "tag.segment.min",
    "Hold for": "tag.segment.hold_for",
  })) {
    const field = page.getByLabel(label, { exact: true });
    const ids = (await field.getAttribute("aria-describedby")) ?? "";
    const error = await view.sees(page.locator(`#${ids.split(" ").at(-1) ?? ""}`));
    expect(said, path).toContain(`"field":"${path}"`);
    expect(said, path).toContain(JSON.stringify(await error.textContent()).slice(1, -1));
  }
  await until("the first wrong field has the focus", async () =>
    page.evaluate<boolean>(`document.activeElement.labels?.[0]?.textContent === "Name"`),
  );
  await view.assertAccessible("a form with wrong values");
  // What no form can know: the servers have no such key.
  await view.goto(
    "/console/new-tag?kind=segment&name=hidden&ceiling=99999999&unguessable.key_id=5",
  );
  await page.getByRole("button", { name: "Create" }).click();
  await view.sees("KEY_UNKNOWN");
});

test("a tag is paused, resumed, advanced and deleted once its name is typed, and the time is counted down", async () => {
  await make({ name: "acted", segment: { maxAge: "60s" } });
  await stage().call(
    "IdService/AllocateSegment",
    { tag: "acted", count: 10, instance: "shop" },
    owner,
  );
  const view = await opened("tags/acted");
  await ask(view, "Pause");
  await view.sees(/idmint tag pause acted --etag r\w+ --wait/u);
  await confirm(view, "acted", "Pause");
  await view.sees("This tag is paused");
  expect(await tagOf("acted")).toMatchObject({ state: "TAG_STATE_PAUSED" });
  // Whoever has a segment may use it for a minute; the server says how long it takes.
  const counted = await view.sees(/callers may use what they hold for (?:1m )?\d+s at most/u);
  const first = await counted.textContent();
  await until("it counts down", async () => (await counted.textContent()) !== first);
  await ask(view, "Resume");
  await confirm(view, "acted", "Resume");
  await view.misses("This tag is paused");
  await ask(view, "Advance");
  await view.page.getByLabel("New floor").fill("9000000000000000001");
  await view.page.getByLabel("I mean to skip").check();
  await view.sees("This skips 8,999,999,999,999,");
  await confirm(view, "acted", "Advance");
  await until(
    "the floor is raised, to the last digit",
    async () => (await tagOf("acted"))["floor"] === "9000000000000000001",
  );
  await view.sees("9000000000000000001");
  await ask(view, "Delete");
  await view.page.keyboard.press("Escape");
  await view.misses(view.page.getByRole("dialog"));
  await until("the address is that of the view", () => view.address === "/console/tags/acted");
  await ask(view, "Delete");
  await confirm(view, "acted", "Delete");
  await view.sees("This tag is deleted");
  await view.misses(view.page.getByRole("button", { name: "Delete" }));
});

test("a tag in Redis is moved, and a sequence with periods says why it cannot return", async () => {
  await make({ name: "moved", sequence: { backend: "SEQUENCE_BACKEND_REDIS" } });
  const { sequence } = await tagOf("moved");
  const { redisServer: from } = sequence as { readonly redisServer: string };
  const to = from === "a" ? "b" : "a";
  const view = await opened("tags/moved");
  await ask(view, "Move");
  await view.page.getByLabel("Redis server", { exact: true }).fill(to);
  await confirm(view, "moved", "Move");
  expect((await tagOf("moved"))["sequence"]).toMatchObject({ redisServer: to });

  const periods = { period: "PERIOD_UNIT_DAY", timeZone: "UTC" };
  await make({ name: "daily", sequence: periods });
  await stage().call("IdService/GenerateId", { tag: "daily" }, owner);
  await view.goto("/console/tags/daily?view=periods");
  await view.sees("No period has ended yet.");
  view.guard.allow(/status of 400/u);
  await ask(view, "Return to a period");
  const dialog = view.page.getByRole("dialog");
  await dialog.getByLabel("Period", { exact: true }).fill("2001-01-01");
  await dialog.getByLabel("Type daily to confirm").fill("daily");
  await dialog.getByRole("button", { name: "Return to a period" }).click();
  const { body } = await stage().ask("TagService/ReturnToPeriod", {
    name: "daily",
    period: "2001-01-01",
  });
  await view.sees(dialog.getByText(String(body["message"])));
});

test("an edit sends what was changed; where somebody was faster both are compared, and mine goes on top", async () => {
  await make({ name: "edited", segment: {} });
  const view = await opened("tags/edited");
  const { page } = view;
  await ask(view, "Edit");
  await page.getByLabel("Min", { exact: true }).fill("77");
  await page.getByLabel("Description").fill("mine");
  await view.sees(/idmint tag update edited --description mine --min 77 --etag r\w+/u);
  await stage().call("TagService/UpdateTag", {
    tag: { name: "edited", description: "theirs", segment: { max: 99_999 } },
    updateMask: "description,segment.max",
  });
  await view.sees("Somebody else changed this tag");
  for (const text of ["mine", "theirs", "99999", "Both changed it"]) await view.sees(text);
  expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  await view.assertAccessible("a conflict");
  await view.picture("conflict-light");
  await page.getByRole("button", { name: "Keep mine on top" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await view.misses(page.getByRole("dialog"));
  expect(await tagOf("edited")).toMatchObject({
    description: "mine",
    segment: { min: 77, max: 99_999 },
  });
  // Faster than the page can see: the server refuses, and nothing is lost.
  view.guard.allow(/status of 409/u);
  await ask(view, "Edit");
  await page.getByLabel("Description").fill("again");
  await page.route("**/GetTagEffect", (route) => route.abort());
  view.guard.allow(/ERR_FAILED/u);
  const update = { tag: { name: "edited", description: "once more" }, updateMask: "description" };
  await stage().call("TagService/UpdateTag", update);
  await page.getByRole("button", { name: "Save" }).click();
  await view.sees(/Somebody else changed it meanwhile/u);
  expect(await tagOf("edited")).toMatchObject({ description: "once more" });
  await page.unroute("**/GetTagEffect");
  await view.sees("Somebody else changed this tag");
  await page.getByRole("button", { name: "Take what is there" }).click();
  expect(await page.getByLabel("Description").inputValue()).toBe("once more");
});

test("a hostile description is text, wherever it is shown", async () => {
  const hostile = {
    markup: `<img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}`,
    emoji: "🙂".repeat(256),
    rtl: "\u202Eabc\u2067 \u0627\u0644\u0633\u0644\u0627\u0645 tail",
  };
  for (const [name, description] of Object.entries(hostile)) {
    await make({ name: `hostile-${name}`, description, segment: {} });
  }
  const view = await opened("tags?q=hostile-");
  for (const [name, description] of Object.entries(hostile)) {
    await view.sees(view.page.getByText(description, { exact: true }));
    await view.assertFits("the list of hostile tags");
    await view.page.getByRole("link", { name: `hostile-${name}` }).click();
    await view.sees(view.page.getByRole("heading", { name: `hostile-${name}`, level: 1 }));
    await view.sees(view.page.getByText(description, { exact: true }));
    await view.page.setViewportSize({ width: 390, height: 844 });
    await view.assertFits(`hostile-${name}`);
    await view.page.setViewportSize({ width: 1_280, height: 800 });
    await ask(view, "Edit");
    expect(await view.page.getByLabel("Description").inputValue()).toBe(description);
    await view.page.keyboard.press("Escape");
    await view.page.goBack();
    await view.page.goBack();
    await view.sees(view.page.getByLabel("Names that begin with"));
  }
});

const making = { timeout: IS_LONG ? 900_000 : 180_000 };
test(
  "many tags are searched and paged, and the URL brings the same view back",
  making,
  async () => {
    const names = Array.from({ length: MANY }, (_, at) => `many-${String(at).padStart(5, "0")}`);
    const rest = [...names];
    const makeSome = async (): Promise<void> => {
      for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
        await make({ name, uuid: { version: 7 } });
      }
    };
    await Promise.all(Array.from({ length: 4 }, makeSome));
    const view = await opened("tags?q=many-");
    const { page } = view;
    await view.sees("many-00000");
    const paging = await tookMs(view, () => page.getByRole("link", { name: "Next page" }).click(), {
      until: "many-00050",
    });
    const shared = await opened(view.address.replace("/console/", ""));
    await shared.sees("many-00050");
    await shared.misses("many-00049");
    await page.goBack();
    await view.sees("many-00049");
    const last = names.at(-1) ?? "";
    const search = page.getByLabel("Names that begin with");
    const searching = await tookMs(view, () => search.fill(last), { until: last });
    await view.misses("many-00000");
    await view.sees(`idmint tag list --prefix ${last}`);
    console.log(`${MANY} tags: a page in ${paging} ms, a search in ${searching} ms`);
  },
);

/** Milliseconds from the first change of the page's address to the row with a name, by the page's own clock. */
async function tookMs(
  view: View,
  act: () => Promise<void>,
  { until: name }: { readonly until: string },
): Promise<number> {
  await view.page.evaluate(`(() => {
    const started = { at: 0 };
    for (const event of ["input", "click"]) {
      addEventListener(event, () => { started.at ||= performance.now(); }, { capture: true, once: true });
    }
    window.seen = new Promise((resolve) => {
      const look = () => {
        if (started.at > 0 && [...document.querySelectorAll("tbody th")].some((one) => one.textContent === "${name}")) {
          resolve(performance.now() - started.at);
        } else requestAnimationFrame(look);
      };
      look();
    });
  })()`);
  await act();
  return Math.round(await view.page.evaluate<number>("window.seen"));
}

test("ids are taken apart and looked up, to the last digit; a test id is issued", async () => {
  await make({
    name: "texts",
    ceiling: "99999999",
    format: { template: "INV{id:8}{luhn}" },
    segment: {},
  });
  await make({ name: "whose", segment: { start: "9007199254740993" } });
  await make({ name: "sessions", uuid: { version: 7 } });
  await make({ name: "flakes", snowflake: {} });
  const given = await stage().call(
    "IdService/AllocateSegment",
    { tag: "whose", count: 5, instance: "shop-1" },
    owner,
  );
  const { segments } = given as { readonly segments: readonly { readonly base: string }[] };
  const first = segments[0]?.base ?? "";
  const view = await opened("tags/flakes");
  const { page } = view;
  await ask(view, "Issue a test id");
  await page.getByRole("button", { name: "Issue an id" }).click();
  await page.getByRole("link", { name: "Take it apart" }).click();
  for (const text of ["Made at", "Ticks", "worker", "sequence"]) await view.sees(text);
  await view.sees(/idmint id decode flakes \d+/u);

  await page.getByLabel("Tag", { exact: true }).fill("texts");
  await page.getByLabel("Id, a number or a text").fill("INV000000018");
  await page.keyboard.press("Enter");
  await view.sees("luhn");
  await view.sees("00000001");

  await page.getByLabel("Tag", { exact: true }).fill("whose");
  await page.getByLabel("Id, a number or a text").fill(first);
  await page.keyboard.press("Enter");
  await view.sees(page.getByText(first, { exact: true }));
  await until("the ledger knows", async () => {
    await page.reload();
    await view.misses("Loading…");
    return page.getByText(/Client shop-1/u).isVisible();
  });
  await page.getByLabel("Tag", { exact: true }).fill("sessions");
  await page.getByLabel("Id, a number or a text").fill("01936b5c-0000-7000-8000-000000000000");
  await page.keyboard.press("Enter");
  await view.sees("UUID version");
  view.guard.allow(/status of 400/u);
  await page.getByLabel("Id, a number or a text").fill("<b>none</b>");
  await page.keyboard.press("Enter");
  await view.sees(page.getByText("INVALID_ID", { exact: true }));
  await page.getByRole("link", { name: "Tags" }).click();
  await view.goto("/console/tags/whose?view=ledger");
  await view.sees("Who holds its segments");
  await view.sees("shop-1");
  await view.assertAccessible("the ledger");
});

test("who may only look, or only take ids, sees no button that is not for them", async () => {
  await make({ name: "looked-at", segment: {} });
  const observer = await opened("tags/looked-at?do=pause", stage().tokens.observer);
  await observer.sees("Issues ids");
  const buttons = observer.page.locator("main").getByRole("button");
  // Lines of the command line can be copied; nothing else can be done.
  const copying = observer.page.getByRole("button", { name: "Copy" });
  expect(await buttons.count()).toBe(await copying.count());
  expect(await observer.page.getByRole("dialog").count()).toBe(0);
  await observer.page.getByRole("link", { name: "Tags" }).click();
  await observer.sees(observer.page.getByRole("link", { name: "looked-at" }));
  expect(await observer.page.getByRole("link", { name: "New tag" }).count()).toBe(0);

  const made = await stage().fleet.cli("token", "create", "shop", "--issue", "looked-*", "--store");
  const issuer = await opened("tags/looked-at", await believed(made));
  await issuer.sees(issuer.page.getByRole("button", { name: "Issue a test id" }));
  expect(await issuer.page.getByRole("button", { name: "Pause" }).count()).toBe(0);
  await issuer.misses("How it is used");
  await issuer.page.getByRole("link", { name: "Tags" }).click();
  await issuer.sees(/Your rights do not cover this/u);
});

test("a server that is killed while a tag is open comes back without a reload", async () => {
  await make({ name: "survives", segment: {} });
  const view = await opened("tags/survives");
  view.guard.allow(/ERR_CONNECTION_(?:REFUSED|RESET)|ERR_EMPTY_RESPONSE|status of 5\d\d/u);
  await view.sees("Issues ids");
  await view.page.evaluate("window.isSamePage = true");
  await stage().server.kill();
  await view.sees(/The server does not answer since/u);
  await view.sees("Issues ids");
  // Its code is not loaded yet.
  await view.page.getByRole("link", { name: "Ids", exact: true }).click();
  await view.sees(/The server cannot be reached/u);
  await stage().server.start();
  await view.sees(view.page.getByLabel("Id, a number or a text"));
  await view.page.goBack();
  await view.sees("Issues ids");
  await view.misses(/The server does not answer since/u);
  expect(await view.page.evaluate("window.isSamePage")).toBe(true);
});

test("every page of tags passes axe in both themes, fits a phone, and is pictured", async () => {
  await make({ name: "pictured", description: "what its ids are for", segment: {} });
  await stage().call("IdService/GenerateIds", { tag: "pictured", count: 100 }, owner);
  for (const theme of THEMES) {
    const view = await opened("", undefined, { theme });
    // What differs between the themes are colours: a few pages have them all.
    for (const [name, address, seen] of theme === "light" || IS_LONG ? PAGES : PAGES.slice(0, 4)) {
      await view.page.setViewportSize({ width: 1_280, height: 800 });
      await view.goto(`/console/${address}`);
      await view.sees(seen);
      await view.misses("Loading…");
      await view.assertAccessible(`${name} (${theme})`);
      await view.picture(`${name}-${theme}`);
      await view.page.setViewportSize({ width: 390, height: 844 });
      await view.assertFits(`${name} on a phone`);
      await view.picture(`${name}-${theme}-phone`);
    }
  }
});

/** Every page of tags, by the name of its pictures. */
const PAGES = [
  ["tags", "tags?q=p", "pictured"],
  ["tag", "tags/pictured", "ids are in the memory of servers"],
  ["new-tag", "new-tag?kind=snowflake&name=trace", "Ids of now and the last"],
  ["tag-edit", "tags/pictured?do=edit", "What cannot be changed"],
  ["new-tag-format", "new-tag?kind=segment&name=t&format.template=A%7Bid%7D&rate=9", "Used up"],
  ["tag-ledger", "tags/pictured?view=ledger", "Who holds its segments"],
  ["tag-advance", "tags/pictured?do=advance", "New floor"],
  ["ids", "ids?tag=pictured&id=7", "A counted number"],
] as const;
