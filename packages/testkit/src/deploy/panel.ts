// What is said of a dashboard: its rows, panels and queries.

/** What a panel asks, and how each series is called. */
export interface Query {
  readonly expr: string;
  readonly legend: string;
}

/** What is said of a panel; the rest follows. */
export interface PanelSpec {
  readonly title: string;
  /** What somebody sees here who does not know the metric, in a sentence. */
  readonly about: string;
  /** As Grafana names units. */
  readonly unit: "bytes" | "percentunit" | "reqps" | "s" | "short";
  readonly queries: readonly Query[];
  /** One number in place of a chart. */
  readonly isStat?: boolean;
  /** For times between seconds and years. */
  readonly isLog?: boolean;
  /** From which value on it is red. */
  readonly redFrom?: number;
  /** Below which value it is red. */
  readonly redBelow?: number;
}

export interface RowSpec {
  readonly title: string;
  readonly panels: readonly PanelSpec[];
}
