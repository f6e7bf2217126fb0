// The pages about servers: two of them in two zones, on a real PostgreSQL, in a real Chromium.
import { expect, test } from "vitest";
import { useChromium } from "../../src/console/index.ts";
import type { View, ViewOptions } from "../../src/console/view.ts";
import { until } from "../../src/fleet/until.ts";
import { signIn, useStage } from "./stage.ts";

const open = useChromium();
const stage = useStage({}, [{ IDMINT_NODE_ZONE: "east" }, { IDMINT_NODE_ZONE: "west" }]);

async function opened(
  address: string,
  token: string = stage().tokens.admin,
  options: ViewOptions = {},
): Promise<View> {
  const view = await open(stage().origin, options);
  await view.goto(`/console/${address}`);
  await signIn(view, token);
  return view;
}

interface Node {
  readonly instance: string;
  readonly zone: string;
  readonly weight: number;
  readonly draining: boolean;
}

/** The server of a zone, as the API tells it. */
async function nodeOf(zone: string): Promise<Node> {
  const { nodes } = await stage().call("NodeService/ListNodes");
  const found = (nodes as readonly Node[]).find((one) => one.zone === zone);
  if (found === undefined) throw new Error(`no server in ${zone}`);
  return found;
}

test("a server is drained, weighed and undrained, and the last one only by typing its name", async () => {
  const [east, west] = [await nodeOf("east"), await nodeOf("west")];
  const view = await opened("nodes");
  const { page } = view;
  await view.sees(page.getByRole("heading", { name: "west" }));
  const button = (verb: string, { instance }: Node) =>
    page.getByRole("button", { name: `${verb}: ${instance}`, exact: true });
  const dialog = page.getByRole("dialog");

  await button("Drain", west).click();
  await view.sees(`idmint node drain ${west.instance}`);
  await view.assertAccessible("the dialog that drains");
  await dialog.getByRole("button", { name: "Drain", exact: true }).click();
  await view.sees(button("Undrain", west));
  expect((await nodeOf("west")).draining).toBe(true);

  // Nobody would take calls then.
  await button("Drain", east).click();
  const drain = dialog.getByRole("button", { name: "Drain", exact: true });
  await view.sees(/nobody gets an id/);
  expect(await drain.isDisabled()).toBe(true);
  await page.getByLabel(`Type ${east.instance} to confirm`).fill(east.instance);
  expect(await drain.isDisabled()).toBe(false);
  await page.keyboard.press("Escape");
  await view.misses(dialog);
  expect((await nodeOf("east")).draining).toBe(false);
  // Whoever came by the keyboard goes on where they were.
  const focused = `document.activeElement?.getAttribute("aria-label")`;
  expect(await page.evaluate(focused)).toBe(`Drain: ${east.instance}`);

  await button("Weight", west).click();
  const weight = page.getByLabel("Weight", { exact: true });
  await weight.fill("1001");
  await view.sees("A whole number from 0 to 1,000.");
  expect(await dialog.getByRole("button", { name: "Set the weight" }).isDisabled()).toBe(true);
  await weight.fill("10");
  await view.sees(`idmint node weight ${west.instance} 10`);
  await page.keyboard.press("Enter");
  await view.misses(dialog);
  await until("the weight is set", async () => (await nodeOf("west")).weight === 10);

  await button("Undrain", west).click();
  await dialog.getByRole("button", { name: "Undrain", exact: true }).click();
  await view.sees(button("Drain", west));
  expect(await nodeOf("west")).toMatchObject({ draining: false, weight: 10 });
});

test("the list is filtered as somebody types, and its address brings the same back", async () => {
  const { instance } = await nodeOf("west");
  const view = await opened("nodes");
  await view.sees(view.page.getByRole("heading", { name: "east" }));
  await view.page.getByLabel(/Filter/).fill("west");
  await view.misses(view.page.getByRole("heading", { name: "east" }));
  await until("the address is that of the view", () => view.address === "/console/nodes?q=west");
  await view.page.reload();
  await view.sees(instance);
  await view.misses(view.page.getByRole("heading", { name: "east" }));
});

test("who may only look sees no button and no page that they cannot use", async () => {
  const view = await opened("nodes", stage().tokens.observer);
  await view.sees("Alive");
  await view.sees("guest");
  for (const name of [/Drain/, /Weight/, /Forget/]) {
    expect(await view.page.getByRole("button", { name }).count(), String(name)).toBe(0);
  }
  const menu = view.page.getByRole("navigation", { name: "Pages" });
  expect(await menu.getByRole("link", { name: "Overview" }).count()).toBe(1);
  for (const name of ["Audit", "Tokens"]) {
    expect(await menu.getByRole("link", { name }).count(), name).toBe(0);
  }
  // The address of a page that is not shown says what it needs.
  view.guard.allow(/status of 403/);
  await view.goto("/console/tokens");
  await view.sees("Not allowed");
  await view.misses(view.page.getByRole("button", { name: "New token" }));
});

test("the overview shows what is issued and refused, and names a server that fell silent", async () => {
  await stage().call("TagService/CreateTag", { tag: { name: "busy", segment: {} } });
  const load = callsAlways(await issuerToken());
  try {
    const view = await opened("");
    await view.sees(view.page.getByRole("heading", { name: "Overview", level: 1 }));
    const tile = (name: string) =>
      view.page.locator(".tile").filter({ hasText: name }).locator("dd").first();
    const above = async (name: string): Promise<boolean> =>
      Number((await tile(name).textContent())?.replaceAll(/[^\d.]/g, "") ?? 0) > 0;
    await until("ids are issued", () => above("Ids a second"));
    await until("calls are refused", () => above("Refused a second"));
    const chart = view.page.getByRole("figure", { name: /Refused calls/ });
    await chart.getByText("As a table").click();
    await view.sees(chart.getByRole("columnheader", { name: "TAG_NOT_FOUND" }));
    await view.sees(chart.getByRole("row").nth(1));
    await view.assertAccessible("the overview with its table");

    await view.page.getByRole("button", { name: "5 minutes", exact: true }).click();
    await view.sees(
      view.page.getByRole("button", { name: "5 minutes", exact: true, pressed: true }),
    );
    await until("the address is that of the view", () => view.address === "/console/?seconds=300");

    const west = stage().fleet.servers[1];
    await west?.kill();
    await view.sees(view.page.getByRole("heading", { name: "Silent servers" }));
    await view.sees(/did not answer within a second|not been heard of for a while/);
    await view.picture("overview-silent");
    await west?.start();
    await view.sees("Granting");
  } finally {
    await load.stop();
  }
});

/** Asks for ids of a tag that there is and of one that there is not, one after the other. */
function callsAlways(token: string): { readonly stop: () => Promise<void> } {
  const over = { isSo: false };
  const load = (async () => {
    while (!over.isSo) {
      await stage().ask("IdService/GenerateId", { tag: "busy" }, token);
      await stage().ask("IdService/GenerateId", { tag: "missing" }, token);
    }
  })();
  return {
    stop: async () => {
      over.isSo = true;
      await load;
    },
  };
}

/** A token of one who takes ids; the role admin issues none. */
async function issuerToken(): Promise<string> {
  const rights = [{ role: "ROLE_ISSUE", tags: "*" }];
  const made = await stage().call("AccessService/CreateToken", { principal: "orders", rights });
  return made["text"] as string;
}

test("the first view shows figures soon", async () => {
  const view = await opened("");
  const figures = view.page.locator(".tile dd").first();
  await view.sees(figures);
  const took: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const began = performance.now();
    await view.page.reload({ waitUntil: "commit" });
    await figures.waitFor();
    took.push(Math.round(performance.now() - began));
  }
  console.log(`The first view took ${took.join(", ")} ms`);
  // A second is promised to people, and measured where nothing else runs.
  expect(Math.min(...took)).toBeLessThan(10_000);
});

test("leased worker ids stand by data center, page by page", async () => {
  await stage().call("TagService/CreateTag", { tag: { name: "trace", snowflake: {} } });
  const issuer = await issuerToken();
  const lease = (at: number): Promise<unknown> =>
    stage().call("WorkerService/LeaseWorker", { tag: "trace", instance: `pod-${at}` }, issuer);
  for (let at = 0; at < 102; at++) await lease(at);
  const view = await opened("workers");
  await view.page.getByRole("link", { name: "trace" }).click();
  await view.sees(view.page.getByRole("heading", { name: "Data center 0" }));
  await view.sees("pod-0");
  await view.sees("idmint worker list trace");
  expect(await view.page.getByRole("row").count()).toBe(101);
  await view.page.getByRole("link", { name: "Next page" }).click();
  await view.sees("pod-101");
  expect(await view.page.getByRole("row").count()).toBe(3);
  await view.assertAccessible("the leases of a tag");
  await view.page.getByLabel("Worker id", { exact: true }).fill("7");
  await view.sees("pod-7");
  await view.misses("pod-101");
  await until(
    "the address is that of the view",
    () => view.address === "/console/workers/trace?worker=7",
  );
  await view.page.goBack();
  await view.page.getByLabel("Worker id", { exact: true }).fill("x");
  await view.sees("A worker id is a number.");
});
