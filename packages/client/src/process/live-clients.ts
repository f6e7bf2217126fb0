/** So many clients of one address are no plan of anybody. */
const MANY = 10;

/** Of all copies of the SDK in the process, since tools that load code anew load the SDK anew as well. */
const KEY = Symbol.for("@idmint/client: live clients");
const all = globalThis as typeof globalThis & { [KEY]?: Map<string, number> };

/**
 * Counts a client that was made; the answer is to be called once, when it is closed. A client that is dropped without `close`
 * keeps its leases of worker ids and its connections, so at ten of one address the process is warned. It is told once for each
 * time that the number rises to ten, and nothing else comes of it.
 */
export function countClient(addresses: readonly string[]): () => void {
  const counts = (all[KEY] ??= new Map<string, number>());
  const at = addresses.join(",");
  const count = (counts.get(at) ?? 0) + 1;
  counts.set(at, count);
  if (count === MANY) {
    const text = `${MANY} clients of ${at} are open in this process. Make one and share it, and close those that are not used any more: each keeps connections and worker ids`;
    process.emitWarning(text, { type: "IdmintWarning", code: "IDMINT_MANY_CLIENTS" });
  }
  return () => {
    const left = (counts.get(at) ?? 1) - 1;
    if (left > 0) counts.set(at, left);
    else counts.delete(at);
  };
}
