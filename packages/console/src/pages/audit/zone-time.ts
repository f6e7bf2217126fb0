type Zone = "local" | "utc";

/** A time of RFC 3339 as a field for times has it, in a zone: 2026-11-22T10:31:04. */
export function fieldTimeOf(instant: string, zone: Zone): string {
  const time = new Date(instant);
  if (instant === "" || Number.isNaN(time.getTime())) return "";
  if (zone === "utc") return time.toISOString().slice(0, 19);
  const date = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join("-");
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":");
  return `${date}T${clock}`;
}

/** What a field for times has, as RFC 3339 in UTC; empty: it has no time. */
export function instantOfField(text: string, zone: Zone): string {
  const time = new Date(zone === "utc" ? `${text}Z` : text);
  return text === "" || Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
