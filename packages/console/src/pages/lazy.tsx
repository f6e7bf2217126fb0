import { signal, useSignal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "../parts/button.tsx";
import { t } from "../text/text.ts";
import type { PageProps } from "./page.ts";

const AGAIN_MS = 2_000;

/**
 * A page whose code is loaded when somebody goes there, so that whoever does not need not load it. While no server answers it is
 * tried again; where another version answers, the page must be loaded anew.
 */
export function lazily(load: () => Promise<ComponentType<PageProps>>): ComponentType<PageProps> {
  const page = signal<ComponentType<PageProps> | undefined>(undefined);
  return function Lazily(props: PageProps): JSX.Element {
    const hasFailed = useSignal(false);
    const isThere = page.value !== undefined;
    useEffect(() => {
      if (isThere) return undefined;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const learn = async (): Promise<void> => {
        try {
          page.value = await load();
        } catch {
          hasFailed.value = true;
          timer = setTimeout(() => void learn(), AGAIN_MS);
        }
      };
      void learn();
      return () => clearTimeout(timer);
    }, [isThere]);
    const Shown = page.value;
    if (Shown !== undefined) return <Shown {...props} />;
    if (!hasFailed.value) return <p class="waiting">{t("common.loading")}</p>;
    return (
      <div class="failure" role="alert">
        <p class="failure-text">{t("error.CONSOLE_UNREACHABLE")}</p>
        <Button onClick={() => location.reload()}>{t("common.retry")}</Button>
      </div>
    );
  };
}
