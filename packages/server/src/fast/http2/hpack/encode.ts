/** Header blocks are made of a few forms of RFC 7541, without a table of our own (`response-heads.ts` has the one exception). */

/** A length of 32 bits takes no more. */
const MAX_INTEGER_BYTES = 6;

/** Name and value. */
export type Field = readonly [name: string, value: string];

/** 6.1: a field of a table. */
export function indexed(index: number): readonly number[] {
  return integer(index, 0x80, 0x7f);
}

/** 6.2.1: a field that enters the peer's table. */
export function kept(name: string, value: string): readonly number[] {
  return [0x40, ...text(name), ...text(value)];
}

/** 6.2.2: a field that enters no table. */
export function plain(name: string, value: string): readonly number[] {
  return [0x00, ...text(name), ...text(value)];
}

/** Most bytes that `writePlain` takes. */
export function plainSize(name: string, value: string): number {
  return 1 + 2 * MAX_INTEGER_BYTES + name.length + value.length;
}

/** As `plain`, into bytes that have room for it. Answers where it ends. */
export function writePlain(bytes: Buffer, begin: number, name: string, value: string): number {
  bytes[begin] = 0x00;
  return writeText(bytes, writeText(bytes, begin + 1, name), value);
}

function writeText(bytes: Buffer, begin: number, value: string): number {
  let at = begin;
  for (const octet of integer(value.length, 0x00, 0x7f)) bytes[at++] = octet;
  return at + bytes.write(value, at, "latin1");
}

/** 6.3: the table has this size from now on. */
export function resized(bytes: number): readonly number[] {
  return integer(bytes, 0x20, 0x1f);
}

function text(value: string): readonly number[] {
  const bytes = Buffer.from(value, "latin1");
  return [...integer(bytes.length, 0x00, 0x7f), ...bytes];
}

/** 5.1. */
function integer(value: number, flags: number, mask: number): readonly number[] {
  if (value < mask) return [flags | value];
  const bytes = [flags | mask];
  let left = value - mask;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push(0x80 | (left & 0x7f));
  return [...bytes, left];
}
