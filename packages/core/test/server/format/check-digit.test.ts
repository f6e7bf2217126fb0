import { type CheckKind, CHECKS } from "../../../src/server/format/check-digit.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

// From the standards and what they are used for: ISO/IEC 7812, ISO/IEC 7064 (annexes), GRid, IBAN's own rule.
test.each<[CheckKind, string, string]>([
  ["luhn", "7992739871", "3"],
  ["luhn", "37828224631000", "5"],
  ["mod11_10", "0794", "5"],
  ["mod97_10", "794", "44"],
  ["mod37_36", "A12425GABC1234002", "M"],
])("%s of %s is %s", (kind, text, check) => {
  expect(CHECKS[kind].of(text)).toBe(check);
  expect(CHECKS[kind].of(`-${text.split("").join("-")}`)).toBe(check);
});

const DIGITS = "0123456789".split("");
const CHARACTERS = [...DIGITS, ..."ABCDEFGHIJKLMNOPQRSTUVWXYZ".split("")];
const kinds = Object.keys(CHECKS) as CheckKind[];

test.each(kinds)("%s finds every single wrong character", (kind) => {
  const alphabet = CHECKS[kind].counts === "digits" ? DIGITS : CHARACTERS;
  const characters = fc.array(fc.constantFrom(...alphabet), { minLength: 1, maxLength: 24 });
  fc.assert(
    fc.property(characters, fc.nat(), fc.constantFrom(...alphabet), (text, place, other) => {
      const at = place % text.length;
      fc.pre(text[at] !== other);
      const wrong = text.with(at, other);
      expect(CHECKS[kind].of(wrong.join(""))).not.toBe(CHECKS[kind].of(text.join("")));
    }),
  );
});

test("neighbours that were swapped are found, by luhn but for 09 and 90", () => {
  const digits = fc.array(fc.constantFrom(...DIGITS), { minLength: 2, maxLength: 24 });
  fc.assert(
    fc.property(digits, fc.nat(), (text, place) => {
      const at = place % (text.length - 1);
      const [a = "", b = ""] = [text[at], text[at + 1]];
      fc.pre(a !== b);
      const swapped = text
        .with(at, b)
        .with(at + 1, a)
        .join("");
      expect(CHECKS.mod97_10.of(swapped)).not.toBe(CHECKS.mod97_10.of(text.join("")));
      if (["09", "90"].includes(a + b)) return;
      expect(CHECKS.luhn.of(swapped)).not.toBe(CHECKS.luhn.of(text.join("")));
    }),
  );
});

test("case does not count where letters do", () => {
  expect(CHECKS.mod37_36.of("a12425gabc1234002")).toBe("M");
});
