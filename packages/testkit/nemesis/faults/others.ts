// What befalls programs, and what operators do.
import { setTimeout as pause } from "node:timers/promises";
import type { Dice } from "../../sim/world/random.ts";
import { made, removed } from "../sites/tag-calls.ts";
import type { Site } from "../sites/site.ts";

type OtherFault = (site: Site, dice: Dice) => Promise<void>;

const ADVANCED = ["orders", "small", "ordered", "bills"] as const;
const MOST_RAISED = 20_000;

async function killCaller(site: Site, dice: Dice): Promise<void> {
  const caller = dice.pick(site.callers.filter(({ kind }) => kind === "sdk"));
  const isBack = site.note("caller", "kill-caller", caller.name);
  await caller.process.kill();
  await caller.start();
  isBack();
}

async function freezeCaller(site: Site, dice: Dice): Promise<void> {
  const caller = dice.pick(site.callers.filter(({ kind }) => kind === "sdk"));
  const isBack = site.note("caller", "freeze-caller", caller.name);
  caller.process.signal("SIGSTOP");
  await pause(dice.pick([300, 1_500, 4_000]));
  caller.process.signal("SIGCONT");
  isBack();
}

async function pauseTag(site: Site, dice: Dice): Promise<void> {
  const request = { name: "paused", etag: "", validateOnly: false };
  await site.byAny("pauses a tag", (api) => api.send(api.tags.pauseTag.bind(api.tags), request));
  await pause(dice.int(100, 2_000));
  await site.byAny("resumes a tag", (api) => api.send(api.tags.resumeTag.bind(api.tags), request));
}

async function remakeTag(site: Site, dice: Dice): Promise<void> {
  const name = "remade";
  const found = site.stage.tags.find(({ tag }) => tag.name === name);
  if (found === undefined) throw new Error(`no tag ${name}`);
  const { tag } = found;
  await site.byAny("deletes a tag", (api) => removed(api, name));
  await pause(dice.int(100, 2_000));
  await site.byAny("makes a tag", (api) => made(api, tag));
}

async function advanceTag(site: Site, dice: Dice): Promise<void> {
  const name = dice.pick(ADVANCED);
  const raise = BigInt(dice.int(1, MOST_RAISED));
  await site.byAny("advances a tag", async (api) => {
    const { floor } = await api.getTag(name);
    const request = {
      name,
      floor: floor + raise,
      etag: "",
      allowLargeRaise: true,
      validateOnly: false,
    };
    return api.send(api.tags.advanceTag.bind(api.tags), request);
  });
}

/** By kind. */
export const OTHER_FAULTS: Readonly<Record<string, OtherFault>> = {
  "kill-caller": killCaller,
  "freeze-caller": freezeCaller,
  "pause-tag": pauseTag,
  "remake-tag": remakeTag,
  "advance-tag": advanceTag,
};
