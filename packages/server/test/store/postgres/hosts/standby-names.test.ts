import { expect, test } from "vitest";
import { requiredStandbys } from "../../../../src/store/postgres/hosts/standby-names.ts";

test.for([
  ["b", ["b"]],
  ['"B-2"', ["b-2"]],
  ["FIRST 1 (b)", ["b"]],
  ["first 2 (c, b)", ["b", "c"]],
  ["ANY 3 (a,b,c)", ["a", "b", "c"]],
  ["2 (b, c)", ["b", "c"]],
  ["2(b, c)", ["b", "c"]],
] as const)("%s requires all of its names", ([setting, names]) => {
  expect(requiredStandbys(setting)).toEqual(names);
});

test.for([
  ["nobody", ""],
  ["anybody", "*"],
  ["anybody, quoted", '"*"'],
  ["the first that is there", "b, c"],
  ["one of two", "ANY 1 (b, c)"],
  ["the first of two", "FIRST 1 (b, c)"],
  ["anybody among others", "FIRST 2 (b, *)"],
  ["one name twice", "ANY 2 (b, B)"],
  ["more than there are", "ANY 3 (b, c)"],
  ["a name with a comma", '"b,c"'],
  ["a name that needs more than idmint reads", '"b c"'],
] as const)("%s proves nothing", ([, setting]) => {
  expect(requiredStandbys(setting)).toEqual([]);
});
