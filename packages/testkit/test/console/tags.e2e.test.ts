// The tags' pages as people use them: a real Chromium, a real server with Redis and ticket databases, a real PostgreSQL.
import { afterAll, expect, test } from "vitest";
import { useChromium } from "../../src/console/index.ts";
import type { View } from "../../src/console/view.ts";
import { runCli } from "../../src/fleet/child.ts";
import { RedisServer } from "../../src/redis/index.ts";
import { signIn, useStage } from "./stage.ts";

const open = useChromium();
let redis: RedisServer | undefined;
afterAll(async () => redis?.stop());
const stage = useStage(async (postgres) => {
  redis = await RedisServer.start();
  const { url } = await postgres.createDatabase();
  const env = { IDMINT_REDIS_URLS: redis.url, IDMINT_TICKET_URLS: `one=${url}` };
  expect(await runCli(["ticket", "migrate"], env)).toMatchObject({ code: 0 });
  return env;
});

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

async function tagOf(name: string): Promise<Readonly<Record<string, unknown>>> {
  const { tag } = await stage().call("TagService/GetTag", { name });
  return tag as Readonly<Record<string, unknown>>;
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
