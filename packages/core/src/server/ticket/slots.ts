/** The largest number ≡ slot (mod slots) that is at most `bound`; may be below 0, and is above −slots for bounds from 0 on. */
export function lastIdUpTo(bound: bigint, slot: number, slots: number): bigint {
  const modulus = BigInt(slots);
  const distance = (bound - BigInt(slot)) % modulus;
  return bound - (distance < 0n ? distance + modulus : distance);
}

/**
 * Which slots each of several databases gets when a tag is made: every database one in turn, so that their numbers differ
 * by one at most and the ids of each lie evenly.
 */
export function initialSlots(slots: number, databases: number): readonly (readonly number[])[] {
  const own: number[][] = Array.from({ length: databases }, () => []);
  for (let slot = 0; slot < slots; slot++) own[slot % databases]?.push(slot);
  return own;
}
