import type { FaultKind } from "./fault-kinds.ts";
import type { SimKindName } from "./kind-names.ts";
import type { Planted } from "./fleet.ts";
import type { Action } from "./plan.ts";

/** A fault of each class that the checker has to notice, and the class. */
export interface PlantedFault {
  readonly about: string;
  /** What the violations say. */
  readonly noticed: RegExp;
  /** What has to befall a fleet for it to show, besides what the seeds bring. */
  readonly needs?: FaultKind;
  /** For how long that has to befall it, where 2.5 s are too short. */
  readonly needsMs?: number;
  /** What the history needs a tag of. */
  readonly needsKind?: SimKindName;
  readonly needsAction?: Action["act"];
  /** Whether servers have to ask who calls. */
  readonly needsAccess?: boolean;
  readonly plant: () => Planted;
}
