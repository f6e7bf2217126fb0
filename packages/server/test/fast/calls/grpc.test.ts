import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeMessage, isGrpc, timeoutOf } from "../../../src/fast/calls/grpc.ts";

const MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1 / 1_000,
  n: 1 / 1_000_000,
};

test("a timeout is up to eight digits and a unit", () => {
  fc.assert(
    fc.property(fc.nat(99_999_999), fc.constantFrom(...Object.keys(MS)), (number, unit) => {
      expect(timeoutOf(`${number}${unit}`)).toBeCloseTo(number * (MS[unit] ?? 0), 6);
    }),
  );
  const wrong = [
    "",
    "S",
    "1",
    "123456789S",
    "-1S",
    "+1S",
    "1.5S",
    " 1S",
    "1S ",
    "1s",
    "1Sm",
    "0x1S",
    "1\u{661}S",
  ];
  expect(wrong.map((text) => timeoutOf(text))).toEqual(wrong.map(() => undefined));
  expect(timeoutOf("00000000n")).toBe(0);
});

test("only gRPC with messages in protobuf is gRPC", () => {
  const right = ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"];
  expect(right.filter((type) => !isGrpc(type))).toEqual([]);
  const wrong = [
    "",
    "application/json",
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc+json",
    "application/grpcx",
    "text/plain",
  ];
  expect(wrong.filter((type) => isGrpc(type))).toEqual([]);
});

test("a message of any text is printable ASCII, and becomes the text again", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const encoded = encodeMessage(text);
      expect(encoded).toMatch(/^[ -~]*$/u);
      expect(decodeURIComponent(encoded)).toBe(text);
    }),
  );
  expect(encodeMessage("100 % of \n\u{1F600} \u{7f}")).toBe("100 %25 of %0A%F0%9F%98%80 %7F");
  // A value of HTTP/2 neither begins nor ends with a space.
  expect(encodeMessage(" a b ")).toBe("%20a b%20");
  // Half of a pair stands for nothing.
  expect(encodeMessage("\u{d800}")).toBe("%EF%BF%BD");
});
