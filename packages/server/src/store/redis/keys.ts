/** Set of the sequences that a Redis was seeded for. */
export const SEQUENCES_KEY = "idmint:sequences";

/** The hash of a tag. */
export function keyOf(tag: string): string {
  return `idmint:{${tag}}`;
}
