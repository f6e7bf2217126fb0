/** Something that a person should know of now. */
export interface ActiveAlarm {
  readonly content: {
    readonly alarm: string;
    readonly severity: "critical" | "warning";
    readonly summary: string;
    readonly details: Readonly<Record<string, string>>;
  };
  /** Since when, or when it was; by the wall clock. */
  readonly sinceMs: number;
  /** Whether it lasts until something ends it. */
  readonly isLasting: boolean;
}
