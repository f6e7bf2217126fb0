// What the console shows to copy is one line for a shell, whatever is in it.
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { cliLine } from "../../src/text/cli.ts";

/** The words of a line, as a real shell reads them. */
function wordsOf(line: string): readonly string[] {
  const script = `idmint() { for word in "$@"; do printf '%s\\0' "$word"; done; }\n${line}\n`;
  const out = execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" });
  return out.split("\0").slice(0, -1);
}

function flag(key: string, text: string): readonly string[] {
  return text.startsWith("-") ? [`--${key}=${text}`] : [`--${key}`, text];
}

test("a plain line is plain", () => {
  expect(cliLine(["node", "drain", "host-1:7600"])).toBe("idmint node drain host-1:7600");
  expect(cliLine(["tag", "list"], { prefix: "orders.", all: true, page: undefined, x: "" })).toBe(
    "idmint tag list --prefix orders. --all",
  );
  expect(cliLine(["token", "create", "ops"], { admin: ["a*", "b"] })).toBe(
    "idmint token create ops --admin 'a*' --admin b",
  );
});

test("a shell reads back the words that went in", () => {
  // A shell ends a word at the zero byte, and no argument can hold one.
  const word = fc
    .string({
      unit: fc.oneof(
        fc.constantFrom(...`'"\\$!*?;&|<>() \n\t~#=-`.split(""), "\u0060"),
        fc.string({ minLength: 1, maxLength: 1 }),
      ),
      minLength: 1,
    })
    .filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(word, word, word, (name, value, other) => {
      const flags = { label: value, more: [other] };
      const words = wordsOf(cliLine(["tag", "get", name], flags));
      const typed = [...flag("label", value), ...flag("more", other)];
      expect(words).toEqual(
        name.startsWith("-")
          ? ["tag", "get", ...typed, "--", name]
          : ["tag", "get", name, ...typed],
      );
    }),
    { numRuns: 100 },
  );
});
