import { Command } from "commander";
import { expect, onTestFinished, test } from "vitest";
import { confirmSteps } from "../../src/commands/databases/migration.ts";
import { idmint, type Play, playServer, type CommandResult, someTag } from "../support.ts";

const answer = { tag: someTag("a"), raised: true, laggingNodes: [], laggingNodeCount: 0 };

/** Runs a command against a server that counts the changes it is asked for. */
async function changing(
  args: readonly string[],
  ask?: (question: string) => Promise<string | undefined>,
): Promise<CommandResult & { readonly address: string; readonly changes: number }> {
  let changes = 0;
  const change = (): unknown => {
    changes++;
    return answer;
  };
  const play: Play = { deleteTag: change, advanceTag: change, pauseTag: change };
  const { address, stop } = await playServer(play);
  onTestFinished(stop);
  const ran = await idmint([...args, "--address", address], ask === undefined ? {} : { ask });
  return { ...ran, address, changes };
}

const DELETE = ["tag", "delete", "a"];
const ADVANCE = ["tag", "advance", "a", "--floor", "9"];

test.each([[DELETE], [ADVANCE]])("%j needs --yes where nobody can be asked", async (args) => {
  const refused = await changing(args);
  expect([refused.exitCode, refused.out, refused.changes]).toEqual([2, "", 0]);
  expect(refused.err).toContain("--yes is required: this ");
  expect(refused.err).toContain(`and cannot be undone (server: ${refused.address})`);
  const done = await changing([...args, "--yes"]);
  expect([done.exitCode, done.changes]).toEqual([0, 1]);
  expect(done.err).toBe(`idmint: server: ${done.address}\n`);
});

test("a step that can be undone says how", async () => {
  for (const [does, undoes] of [
    ["stop-issuing", "resume-issuing"],
    ["resume-issuing", "stop-issuing"],
  ] as const) {
    const { exitCode, err } = await changing([does, "--all"]);
    expect([exitCode, err.includes("undone by: ")]).toEqual([2, true]);
    expect(err).toContain(`idmint ${undoes} --all`);
  }
});

test("on a terminal a person is asked, and only yes goes on", async () => {
  for (const typed of ["", "y", "no", "yes please", undefined]) {
    const { exitCode, out, err, changes } = await changing(DELETE, async () => typed);
    expect([typed, exitCode, out, changes]).toEqual([typed, 130, "", 0]);
    expect(err).toContain("nothing was changed");
  }
  const questions: string[] = [];
  const done = await changing(DELETE, async (question) => {
    questions.push(question);
    return " Yes ";
  });
  expect([done.exitCode, done.changes, questions]).toEqual([0, 1, ["  Type yes to go on: "]]);
  expect(done.err).toContain(`idmint: server: ${done.address}\n  This deletes tag "a", `);
});

async function never(): Promise<string> {
  throw new Error("nobody was to be asked");
}

test("--yes asks nobody, is accepted before and behind a command, and where it is not needed", async () => {
  expect((await changing(["--yes", ...DELETE], never)).changes).toBe(1);
  expect((await changing(["tag", "--yes", "delete", "a"], never)).changes).toBe(1);
  expect((await changing(["tag", "pause", "a", "--yes"], never)).changes).toBe(1);
  expect((await changing([...ADVANCE, "--dry-run"], never)).changes).toBe(1);
  const json = await changing([...DELETE, "--yes", "--json"], never);
  expect([json.exitCode, json.err]).toEqual([0, ""]);
});

test("a schema that is there is changed only when that was confirmed; a new one is made at once", async () => {
  const asked: string[] = [];
  const io = {
    env: {},
    signal: new AbortController().signal,
    out: async () => {},
    err: (text: string) => void asked.push(text),
  };
  const step = { number: 2, worksFrom: 1, name: "more", sql: "" };
  const report = (from: number, steps: readonly (typeof step)[]) => async () => ({
    from,
    to: 2,
    steps,
    created: false,
  });
  const command = new Command("migrate");
  await confirmSteps(command, io, "store: sqlite:/x", [report(0, [step]), report(2, [])]);
  expect(asked).toEqual([]);
  const plans = [report(0, [step]), report(1, [step])];
  await expect(confirmSteps(command, io, "store: sqlite:/x", plans)).rejects.toThrow(
    "this changes the schema from 1 to 2, and cannot be undone (store: sqlite:/x)",
  );
});
