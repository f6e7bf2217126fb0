const V4_IN_V6 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
/** Groups of an IPv6 address that tell one network from another; a host may take any address in its network. */
const NETWORK_GROUPS = 4;
const GROUPS = 8;

/**
 * Who a caller is, by the address of its connection: `192.0.2.1:4711` is `192.0.2.1`, and of IPv6 it is the network of 64
 * bits.
 */
export function callerOf(peer: string): string {
  const colon = peer.lastIndexOf(":");
  const isV4 = peer.indexOf(":") === colon;
  if (isV4) return colon < 0 ? peer : peer.slice(0, colon);
  // An IPv6 address comes with its port behind it, and without brackets.
  const address = peer.slice(0, colon);
  const [, mapped] = V4_IN_V6.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  const [before = "", after = ""] = (address.split("%")[0] ?? "").split("::");
  const head = before === "" ? [] : before.split(":");
  const tail = after === "" ? [] : after.split(":");
  const zeros = Math.max(0, GROUPS - head.length - tail.length);
  const groups = [...head, ...Array<string>(zeros).fill("0"), ...tail].slice(0, NETWORK_GROUPS);
  return `${groups.join(":")}::/64`;
}
