/** The names of all alarms. docs/alarms.md explains each. */
type AlarmName =
  | "CLOCK_AHEAD"
  | "CLOCK_REFUSED"
  | "CLOCK_WENT_BACK"
  | "INSTANCE_SHARED"
  | "ISSUING_RESUMED"
  | "ISSUING_STOPPED"
  | "LEASE_FILE_FAILED"
  | "MAX_NOT_RAISED"
  | "OVERLOADED"
  | "PERIOD_IN_DOUBT"
  | "REDIS_LOST"
  | "REDIS_RESEEDED"
  | "REDIS_UNFIT"
  | "STORE_ACCEPTED"
  | "ACCEPTED_TOO_LOW"
  | "STORE_FAILED_OVER"
  | "STORE_LOST"
  | "STORE_WARNING"
  | "STORE_WENT_BACK"
  | "TAG_RUNS_OUT"
  | "TICKET_DATABASE_LOST"
  | "TICKET_DATABASE_REFUSED"
  | "CUT_OFF";

/** What an alarm says. */
export interface AlarmContent {
  readonly alarm: AlarmName;
  /** Alarms with the same key within a minute are one. */
  readonly key: string;
  /** critical: ids are refused, or may be soon. warning: ids are issued, and somebody should know the cause. */
  readonly severity: "critical" | "warning";
  /** A sentence for people. */
  readonly summary: string;
  /** Facts for machines. Never a secret. */
  readonly details: Readonly<Record<string, string>>;
}

/** An alarm on its way. Its JSON is what the webhook gets, and what stands in the queue. */
export interface Alarm extends AlarmContent {
  /** Unique; the same at every delivery. */
  readonly id: string;
  /** When it was raised, by the server's wall clock: RFC 3339, UTC. */
  readonly time: string;
  /** The server that raised it: its host and its gRPC port. */
  readonly server: string;
}

/** What delivery needs to know of an alarm. The rest is for the receiver. */
export type Envelope = Pick<Alarm, "id" | "key"> & { readonly raisedAtMs: number };

/** Reads the envelope of a text from the queue; undefined when no server wrote it. */
export function envelopeOf(body: string): Envelope | undefined {
  try {
    const { id, key, time } = JSON.parse(body) as Record<string, unknown>;
    if (typeof id !== "string" || typeof key !== "string" || typeof time !== "string") {
      return undefined;
    }
    const raisedAtMs = Date.parse(time);
    return Number.isNaN(raisedAtMs) ? undefined : { id, key, raisedAtMs };
  } catch {
    return undefined;
  }
}
