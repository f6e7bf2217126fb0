import { CODE_OF_REASON, IdmintError, invalidField, type Reason } from "@idmint/core";
import { CommanderError } from "commander";
import { expect, test } from "vitest";
import { failureFrom, failureJson, failureText } from "../../src/calls/failure.ts";
import { exitCodeOf } from "../../src/process/exit-code.ts";
import { idmint } from "../support.ts";

test("every reason has the exit code of its kind", () => {
  const reasons = Object.keys(CODE_OF_REASON) as Reason[];
  const byExit = Object.groupBy(reasons, (reason) => String(exitCodeOf(CODE_OF_REASON[reason])));
  expect(byExit["2"]).toEqual(
    reasons.filter((each) => CODE_OF_REASON[each] === "INVALID_ARGUMENT"),
  );
  expect(byExit["3"]).toEqual(["SERVICE_NOT_FOUND", "TAG_NOT_FOUND", "TOKEN_NOT_FOUND"]);
  expect(byExit["4"]?.toSorted()).toEqual([
    "CLOCK_MOVED_BACKWARDS",
    "CLOCK_NOT_CONFIRMED",
    "DEADLINE_EXCEEDED",
    "DRAINING",
    "MAX_NOT_RAISED",
    "SEGMENT_NOT_READY",
    "SERVER_UNAVAILABLE",
    "STORE_UNAVAILABLE",
  ]);
  expect(byExit["130"]).toEqual(["CALL_CANCELLED"]);
  expect(Object.keys(byExit).toSorted()).toEqual(["1", "130", "2", "3", "4"]);
  expect(exitCodeOf("SOMETHING_NEW")).toBe(1);
});

test("an expected error has a reason, a way out and no stack", () => {
  const thrown = new IdmintError("TAG_EXISTS", 'tag "a" is there', { metadata: { tag: "a" } });
  const failure = failureFrom(thrown);
  expect(failureText(failure!)).toBe(
    'idmint: TAG_EXISTS: tag "a" is there\n  see its settings with `idmint tag get a`\n',
  );
  expect(JSON.parse(failureJson(failure!))).toEqual({
    error: {
      code: "ALREADY_EXISTS",
      reason: "TAG_EXISTS",
      message: 'TAG_EXISTS: tag "a" is there',
      fields: [],
      metadata: { tag: "a" },
      exitCode: 1,
    },
  });
});

test("an unforeseen error keeps its stack", () => {
  const failure = failureFrom(new TypeError("boom"));
  expect(failure).toMatchObject({ exitCode: 1, reason: "INTERNAL" });
  expect(failureText(failure!)).toContain("failure.test.ts");
});

test("a field of the API is shown as the flag it was typed as; JSON keeps the API's name", () => {
  const failure = failureFrom(invalidField("tag.segment.min", "must be at most max"));
  expect(failureText(failure!)).toBe("idmint: INVALID_ARGUMENT: --min must be at most max\n");
  expect(failureJson(failure!)).toContain('"field":"tag.segment.min"');
});

test("a word of the API in a description is shown as its flag; JSON keeps the API's word", () => {
  const failure = failureFrom(
    invalidField("floor", "is too much; set allow_large_raise", "RAISE_TOO_LARGE"),
  );
  expect(failureText(failure!)).toBe(
    "idmint: RAISE_TOO_LARGE: --floor is too much; set --allow-large-raise\n",
  );
  expect(failureJson(failure!)).toContain("set allow_large_raise");
});

test("the parts of a template are no flags, and the settings around them are", () => {
  const failure = failureFrom(
    invalidField(
      "tag.format",
      "{data_center} is missing, or {data_center:2}; see data_center_bits and allow_large_raise",
    ),
  );
  expect(failureText(failure!)).toContain(
    "--format {data_center} is missing, or {data_center:2}; see data_center_bits and --allow-large-raise\n",
  );
});

test("who is not known is told how to prove who calls", () => {
  const failure = failureFrom(new IdmintError("UNAUTHENTICATED", "no token"));
  expect(failureText(failure!)).toContain("\n  prove who calls with --token-file");
});

test("help that was asked for is no failure", () => {
  expect(failureFrom(new CommanderError(0, "commander.helpDisplayed", "(outputHelp)"))).toBe(
    undefined,
  );
});

test("a UUID tag without a version is told which there are", async () => {
  const { err } = await idmint(["tag", "create", "u", "--kind", "uuid", "--dry-run"]);
  expect(err).toBe("idmint: FIELD_REQUIRED: --version is required: 1 to 7\n");
});
