import { expect, test } from "vitest";
import {
  createPresenceState,
  issueUntil,
  pollObeyed,
  renewalAcknowledged,
  resumePresence,
} from "../../../src/server/node/presence-state.ts";

const MAX_OFFLINE = 1_000;

/** A renewal and its whole poll, answered at once. */
function renewed(
  state: ReturnType<typeof createPresenceState>,
  sentAt: number,
  now = sentAt,
): void {
  pollObeyed(state, renewalAcknowledged(state, "", sentAt, now));
}

test("nothing is issued before a poll that was sent after the row was there", () => {
  const state = createPresenceState(MAX_OFFLINE);
  expect(issueUntil(state, "")).toBe(-Infinity);
  renewed(state, 0, 10);
  expect(issueUntil(state, "")).toBe(-Infinity);
  renewed(state, 20, 30);
  expect(issueUntil(state, "")).toBe(1_020);
});

test("the time to issue counts from the sending, and is never taken back", () => {
  const state = createPresenceState(MAX_OFFLINE);
  renewed(state, 0);
  renewed(state, 100, 900);
  expect(issueUntil(state, "")).toBe(1_100);
  renewed(state, 50, 950);
  expect(issueUntil(state, "")).toBe(1_100);
});

test("an acknowledgement that comes when others may have gone on only makes the server visible", () => {
  const state = createPresenceState(MAX_OFFLINE);
  renewed(state, 0);
  renewed(state, 100);
  // Sent in time, acknowledged at the very moment at which others stop waiting.
  renewed(state, 900, 1_100);
  expect(issueUntil(state, "")).toBe(1_100);
  renewed(state, 1_150, 1_200);
  expect(issueUntil(state, "")).toBe(2_150);
});

test("a poll that is not obeyed as a whole keeps nobody issuing", () => {
  const state = createPresenceState(MAX_OFFLINE);
  renewed(state, 0);
  renewed(state, 0);
  renewalAcknowledged(state, "", 500, 510);
  expect(issueUntil(state, "")).toBe(1_000);
});

test("each database counts for itself", () => {
  const state = createPresenceState(MAX_OFFLINE);
  for (const sentAt of [0, 100]) {
    const both = ["a", "b"].map((part) => renewalAcknowledged(state, part, sentAt, sentAt));
    for (const one of both) pollObeyed(state, one);
  }
  pollObeyed(state, renewalAcknowledged(state, "a", 900, 900));
  expect([issueUntil(state, "a"), issueUntil(state, "b")]).toEqual([1_900, 1_100]);
  expect(issueUntil(state, "c")).toBe(-Infinity);
});

test("who goes on in another one's place has its time, and no more", () => {
  const state = createPresenceState(MAX_OFFLINE);
  resumePresence(state, "", 700);
  expect(issueUntil(state, "")).toBe(700);
  renewed(state, 650, 699);
  expect(issueUntil(state, "")).toBe(1_650);
});

test("without a limit a server issues for ever once its row is there", () => {
  const state = createPresenceState(undefined);
  renewed(state, 0);
  expect(issueUntil(state, "")).toBe(-Infinity);
  renewed(state, 10);
  expect(issueUntil(state, "")).toBe(Infinity);
});
