import type { JSX } from "preact";
import { t } from "../text/text.ts";
import { Button } from "./button.tsx";
import { say } from "./toasts.tsx";

interface CliLineProps {
  /** What `cliLine` made. */
  readonly line: string;
  /** What it is for, if not the same as what stands beside it. */
  readonly title?: string;
}

/** What to type on a command line, with a button that copies it. */
export function CliLine({ line, title }: CliLineProps): JSX.Element {
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(line);
    say(t("common.copied"));
  };
  return (
    <div class="cli">
      <p class="cli-title">{title ?? t("common.cli")}</p>
      <div class="cli-row">
        <code tabindex={0}>{line}</code>
        {/* The browser offers a clipboard only to pages it trusts: over TLS, or of this machine. */}
        {navigator.clipboard !== undefined && (
          <Button onClick={() => void copy()}>{t("common.copy")}</Button>
        )}
      </div>
    </div>
  );
}
