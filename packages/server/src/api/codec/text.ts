import { numberSize, writeNumber } from "./varint.ts";

/** Bytes of a field of text with a tag of one byte; 0: it is empty, and left out; -1: it is not ASCII. */
export function textSize(text: string): number {
  if (text === "") return 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x80) return -1;
  return 1 + numberSize(text.length) + text.length;
}

/** Answers where it ends. */
export function writeText(bytes: Uint8Array, begin: number, tag: number, text: string): number {
  if (text === "") return begin;
  bytes[begin] = tag;
  const at = writeNumber(bytes, begin + 1, text.length);
  for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
  return at + text.length;
}
