/** A message's codec, as the generated code has it. By hand, it may do without bytes of its own too. */
export interface Codec<T> {
  decode(bytes: Uint8Array): T;
  encode(message: T): { finish(): Uint8Array };
  /** Reads a message where it lies. */
  decodeAt?(bytes: Uint8Array, from: number, to: number): T;
  /** Bytes that `write` takes for this message; -1: only `encode` writes it. */
  sizeOf?(this: void, message: T): number;
  /** Writes a message where it goes: as many bytes as `sizeOf` said. Never throws. */
  write?(this: void, message: T, bytes: Uint8Array, at: number): void;
}

/** How the answers of a row are written, whatever wrote their codec. */
export interface MessageWriter<T> {
  /** In bytes of its own. */
  encode(message: T): Uint8Array;
  /** As those of `Codec`. */
  sizeOf(message: T): number;
  write(message: T, bytes: Uint8Array, at: number): void;
}

export function writerOf<T>(codec: Codec<T>): MessageWriter<T> {
  const { sizeOf, write } = codec;
  const encode = (message: T): Uint8Array => codec.encode(message).finish();
  if (sizeOf === undefined || write === undefined) {
    return { encode, sizeOf: () => -1, write: () => undefined };
  }
  return { encode, sizeOf, write };
}

/** A codec that writes by hand what is usual, and leaves the rest to the generated one. */
export function writtenByHand<T>(
  generated: Codec<T>,
  { sizeOf, write }: Required<Pick<Codec<T>, "sizeOf" | "write">>,
): Codec<T> {
  return {
    decode: (bytes) => generated.decode(bytes),
    encode: (message) => {
      const size = sizeOf(message);
      if (size < 0) return generated.encode(message);
      const bytes = new Uint8Array(size);
      write(message, bytes, 0);
      return { finish: () => bytes };
    },
    sizeOf,
    write,
  };
}
