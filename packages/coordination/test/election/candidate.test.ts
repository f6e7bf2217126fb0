import { expect, test } from "vitest";
import { CoordinationError } from "../../src/errors.ts";
import type { Ballot, Verdict } from "../../src/election/ballot.ts";
import { Candidate } from "../../src/election/election.ts";
import { resolveOptions } from "../../src/election/options.ts";
import type { Leadership } from "../../src/election/leadership.ts";
import { FakeRuntime } from "../fake-runtime.ts";
import { failure } from "../support.ts";

class FakeBallot implements Ballot {
  readonly verdicts: (Verdict | CoordinationError | Promise<Verdict>)[] = [];
  readonly asked: string[] = [];
  readonly floors: bigint[] = [];
  isRenewed = true;

  readonly campaign = async (
    owner: string,
    { floor }: { readonly floor: bigint },
  ): Promise<Verdict> => {
    this.asked.push(`campaign ${owner.split("/")[0]}`);
    this.floors.push(floor);
    const verdict = this.verdicts.shift();
    if (verdict === undefined) throw new Error("nothing more to say");
    if (verdict instanceof CoordinationError) throw verdict;
    return verdict;
  };

  readonly enter = async (): Promise<boolean> => true;

  readonly renew = async (): Promise<boolean> => {
    this.asked.push("renew");
    return this.isRenewed;
  };

  readonly resign = async (): Promise<boolean> => {
    this.asked.push("resign");
    return true;
  };
}

const down = new CoordinationError("NODE_UNAVAILABLE", "down");

function candidate(): {
  runtime: FakeRuntime;
  ballot: FakeBallot;
  one: Candidate;
  types: string[];
} {
  const runtime = new FakeRuntime();
  const ballot = new FakeBallot();
  const types: string[] = [];
  const onEvent = ({ type }: { readonly type: string }): unknown => types.push(type);
  const options = { node: "redis://unused", name: "e", ttlMs: 1_000, onEvent };
  const one = new Candidate(ballot, resolveOptions(options, "one"), runtime);
  return { runtime, ballot, one, types };
}

async function elected(runtime: FakeRuntime, campaign: Promise<Leadership>): Promise<Leadership> {
  await runtime.pass(5_000);
  return campaign;
}

test("it waits while another leads, Redis settles or is away, and leads then", async () => {
  const { runtime, ballot, one, types } = candidate();
  ballot.verdicts.push(
    { type: "led", leader: "other", leftMs: 900, setBackMs: 0 },
    { type: "led", leader: "other", leftMs: 500, setBackMs: 0 },
    down,
    { type: "settling", leftMs: 1_000, setBackMs: 0 },
    { type: "elected", term: 5n },
  );
  const leader = await elected(runtime, one.campaign());
  expect(leader.term).toBe(5n);
  expect(types).toEqual(["following", "campaign-failed", "settling", "elected"]);
  // What was not heard may have been done: it is taken back.
  expect(ballot.asked.filter((what) => what === "resign")).toHaveLength(1);
  await leader.resign();
});

test("an election that took longer than its term is no election", async () => {
  const { runtime, ballot, one } = candidate();
  const { promise, resolve } = Promise.withResolvers<Verdict>();
  ballot.verdicts.push(promise, { type: "elected", term: 6n });
  const campaign = one.campaign();
  await runtime.pass(1_000);
  resolve({ type: "elected", term: 5n });
  const leader = await elected(runtime, campaign);
  expect(leader.term).toBe(6n);
  expect(ballot.asked.slice(0, 3)).toEqual(["campaign one", "resign", "campaign one"]);
  await leader.resign();
});

test("a leader renews before its time is over, and stops when it is refused", async () => {
  const { runtime, ballot, one, types } = candidate();
  ballot.verdicts.push({ type: "elected", term: 5n });
  const leader = await one.campaign();
  await runtime.pass(3_000);
  leader.assert();
  ballot.isRenewed = false;
  await runtime.pass(400);
  expect(leader.signal.aborted).toBe(true);
  expect(() => leader.assert()).toThrow("NOT_LEADER");
  expect(types).toEqual(["elected", "leadership-lost"]);
  const { length } = ballot.asked;
  await runtime.pass(5_000);
  expect(ballot.asked).toHaveLength(length);
  expect(runtime.time.pending).toBe(0);
});

test("it wants terms above those it had, and refuses others", async () => {
  const { ballot, one } = candidate();
  ballot.verdicts.push({ type: "elected", term: 5n }, { type: "elected", term: 5n });
  const first = await one.campaign();
  await first.resign();
  await expect(one.campaign()).rejects.toThrow("TOKEN_WENT_BACK");
  expect(ballot.floors).toEqual([0n, 5n]);
});

test("what waiting does not mend is told at once, and waiting has an end", async () => {
  const { runtime, ballot, one } = candidate();
  ballot.verdicts.push(new CoordinationError("NODE_REFUSED", "no such command"));
  await expect(one.campaign()).rejects.toThrow("NODE_REFUSED");
  for (let i = 0; i < 50; i++) ballot.verdicts.push(down);
  const late = failure(one.campaign({ waitMs: 500 }));
  await runtime.pass(600);
  expect(await late).toMatchObject({ reason: "DEADLINE_EXCEEDED", cause: down });
});
