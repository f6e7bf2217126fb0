/** Most zones that are kept. Each tag with a named zone uses one. */
const MAX_ZONES = 256;

/**
 * Makes a function that answers a time zone's offset from UTC at a moment, in minutes. It answers undefined when the
 * runtime knows no such zone.
 */
export function zoneOffsets(): (zone: string, ms: number) => number | undefined {
  const zones = new Map<string, Intl.DateTimeFormat>();
  const zoneOf = (name: string): Intl.DateTimeFormat => {
    const known = zones.get(name);
    if (known !== undefined) return known;
    if (zones.size >= MAX_ZONES) zones.clear();
    const zone = new Intl.DateTimeFormat("en", { timeZone: name, timeZoneName: "longOffset" });
    zones.set(name, zone);
    return zone;
  };
  return (name, ms) => offsetAt(() => zoneOf(name), ms);
}

function offsetAt(zone: () => Intl.DateTimeFormat, ms: number): number | undefined {
  try {
    const parts = zone().formatToParts(ms);
    const name = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign, hours = "0", minutes = "0", seconds = "0"] =
      /^GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/.exec(name) ?? [];
    const offset = Number(hours) * 60 + Number(minutes) + Number(seconds) / 60;
    return sign === "-" ? -offset : offset;
  } catch {
    return undefined;
  }
}
