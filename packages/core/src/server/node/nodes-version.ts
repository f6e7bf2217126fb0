/** What callers go by when they choose a server. */
export interface CalledNode {
  readonly instance: string;
  readonly address: string;
  readonly zone: string;
  readonly weight: number;
  readonly isDraining: boolean;
}

const OFFSET = 0x81_1c_9d_c5;
const PRIME = 0x01_00_01_93;

/**
 * Checksum of a list of servers (FNV-1a over UTF-16, 32 bits), never 0. The same for every order of the list, so that servers that see
 * the same answer the same.
 */
export function nodesVersionOf(nodes: readonly CalledNode[]): number {
  const lines = nodes
    .filter(({ address }) => address !== "")
    .map(({ instance, address, zone, weight, isDraining }) =>
      JSON.stringify([instance, address, zone, weight, isDraining]),
    )
    .toSorted();
  let hash = OFFSET;
  const text = lines.join("\n");
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME);
  return hash >>> 0 || 1;
}
