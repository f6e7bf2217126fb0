import { expect, test } from "vitest";
import {
  agreedMaster,
  disagreementText,
  type SentinelAnswer,
  type SentinelVote,
  wrongSentinelText,
} from "../../src/redis/sentinel-vote.ts";

const a: SentinelAnswer = { says: "master", at: { host: "10.0.0.1", port: 6379 } };
const b: SentinelAnswer = { says: "master", at: { host: "10.0.0.1", port: 6380 } };
const six: SentinelAnswer = { says: "master", at: { host: "fd00::1", port: 6379 } };
const silent: SentinelAnswer = { says: "nothing", why: "connect ECONNREFUSED" };
const unknown: SentinelAnswer = { says: "unknown" };
const redis: SentinelAnswer = { says: "not-a-sentinel" };

function votes(...answers: readonly SentinelAnswer[]): readonly SentinelVote[] {
  return answers.map((answer, at) => ({ sentinel: `s${at + 1}:26379`, answer }));
}

test.each([
  { answers: [a], master: 6379 },
  { answers: [a, a, a], master: 6379 },
  { answers: [b, a, b], master: 6380 },
  { answers: [a, a, silent], master: 6379 },
  { answers: [redis, a, a], master: 6379 },
  { answers: [a, a, a, b, b], master: 6379 },
  // Half is no majority, and silence agrees with nobody.
  { answers: [a, b], master: undefined },
  { answers: [a, silent], master: undefined },
  { answers: [a, silent, silent], master: undefined },
  { answers: [a, b, silent], master: undefined },
  { answers: [a, a, b, b], master: undefined },
  { answers: [unknown, unknown, unknown], master: undefined },
  { answers: [], master: undefined },
])("a master is one that more than half of all name: $answers", ({ answers, master }) => {
  expect(agreedMaster(votes(...answers))?.port).toBe(master);
});

test("a refusal says what the Sentinels answered, and the way out", () => {
  expect(disagreementText("orders", votes(a, b, silent))).toBe(
    'its Sentinels disagree about the master "orders": s1:26379: the master is 10.0.0.1:6379; s2:26379: the master is 10.0.0.1:6380; s3:26379: connect ECONNREFUSED',
  );
  expect(disagreementText("orders", votes(silent, six, silent))).toBe(
    'no majority of its Sentinels names the master "orders": s1:26379, s3:26379: connect ECONNREFUSED; s2:26379: the master is [fd00::1]:6379',
  );
  expect(disagreementText("ordres", votes(unknown))).toContain("look at the end of the URL");
  const noEntry: SentinelAnswer = { says: "no-entry", why: "WRONGPASS" };
  expect(disagreementText("orders", votes(noEntry))).toContain("given for Sentinels (WRONGPASS)");
  expect(wrongSentinelText(votes(a, a, silent))).toBeUndefined();
  expect(wrongSentinelText(votes(a, redis, a))).toBe(
    "s2:26379: this is a Redis and not a Sentinel; write redis://host:port for it, or list the Sentinels of its master",
  );
});
