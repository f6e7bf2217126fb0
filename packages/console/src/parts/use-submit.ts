import { useSignal } from "@preact/signals";
import { ApiError } from "../api/errors.ts";

/** What a form sends, one call at a time. */
interface Submit {
  readonly isBusy: boolean;
  /** Why the last call failed. */
  readonly error: ApiError | undefined;
  /** Makes a call. What is no error of the API is thrown on. */
  readonly send: (work: () => Promise<void>) => Promise<void>;
}

export function useSubmit(): Submit {
  const error = useSignal<ApiError | undefined>(undefined);
  const isBusy = useSignal(false);
  return {
    get isBusy() {
      return isBusy.value;
    },
    get error() {
      return error.value;
    },
    send: async (work) => {
      isBusy.value = true;
      error.value = undefined;
      try {
        await work();
      } catch (thrown) {
        if (!(thrown instanceof ApiError)) throw thrown;
        error.value = thrown;
      } finally {
        isBusy.value = false;
      }
    },
  };
}
