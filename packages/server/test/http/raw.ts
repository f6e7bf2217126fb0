// Connections of tests, on which a test writes whatever it likes.
import { onTestFinished } from "vitest";
import { until } from "../support.ts";
import { type RawAnswer, rawConnection, type RawConnection } from "@idmint/testkit";

export interface Raw extends RawConnection {
  /** Fulfils when that many answers have come whole, or the connection is closed. */
  readonly answers: (count: number) => Promise<readonly RawAnswer[]>;
}

/** A connection that ends with the test. `from`: the address that it comes from. */
export function rawTo(address: string, from?: string): Raw {
  const raw = rawConnection(address, from);
  onTestFinished(() => void raw.socket.destroy());
  const answers = async (count: number): Promise<readonly RawAnswer[]> => {
    await until(() => raw.isClosed() || raw.answersFrom(0).length >= count);
    return raw.answersFrom(0);
  };
  return { ...raw, answers };
}
