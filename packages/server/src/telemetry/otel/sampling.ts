import { invalidField } from "@idmint/core";

/** Which calls are traced, by what their callers say of themselves and by chance. */
export interface Sampling {
  /** Of the calls that nobody decided about. */
  readonly share: number;
  /** Whether a caller that is traced, or is not, decides for what it calls. */
  readonly followsCaller: boolean;
}

const VARIABLE = "OTEL_TRACES_SAMPLER";
const NAMES = ["always_on", "always_off", "traceidratio"] as const;
const PARENT_BASED = /^parentbased_/;
/** Where the flags stand in `00-<32 digits>-<16 digits>-01`. */
const FLAGS_AT = 53;

/** What the standard variables say: OTEL_TRACES_SAMPLER and its argument. Throws for what they cannot be. */
export function samplingOf(env: NodeJS.ProcessEnv): Sampling {
  const sampler = env[VARIABLE] ?? "parentbased_always_on";
  const name = NAMES.find((one) => one === sampler.replace(PARENT_BASED, ""));
  if (name === undefined) {
    const all = NAMES.flatMap((one) => [one, `parentbased_${one}`]).join(", ");
    throw invalidField(VARIABLE, `must be one of ${all}`, "UNKNOWN_VALUE");
  }
  const shares = { always_on: 1, always_off: 0, traceidratio: ratioOf(env) };
  return { share: shares[name], followsCaller: PARENT_BASED.test(sampler) };
}

function ratioOf(env: NodeJS.ProcessEnv): number {
  const variable = `${VARIABLE}_ARG`;
  const text = env[variable] ?? "1";
  const ratio = Number(text);
  if (text.trim() !== "" && ratio >= 0 && ratio <= 1) return ratio;
  throw invalidField(variable, "must be a number from 0 to 1", "VALUE_OUT_OF_RANGE");
}

/**
 * Whether a call is traced. `traceparent`: the caller's header, if it has one. Nothing is made of it here: most calls are
 * not traced.
 */
export function isSampled(
  { share, followsCaller }: Sampling,
  traceparent: unknown,
  random: () => number,
): boolean {
  if (followsCaller && typeof traceparent === "string" && traceparent.length > FLAGS_AT + 1) {
    return (Number.parseInt(traceparent.charAt(FLAGS_AT + 1), 16) & 1) === 1;
  }
  return share >= 1 || (share > 0 && random() < share);
}
