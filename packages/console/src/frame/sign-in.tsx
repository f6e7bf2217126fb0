import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { ApiError } from "../api/errors.ts";
import { Button } from "../parts/button.tsx";
import { CliLine } from "../parts/cli-line.tsx";
import { TextField } from "../parts/field.tsx";
import { PageView } from "../parts/page.tsx";
import { signIn } from "../state/sign-in.ts";
import { cliLine } from "../text/cli.ts";
import { errorText } from "../text/error-text.ts";
import { t } from "../text/text.ts";

/** Stands where the page would, whose address stays in the URL: it is there after signing in. */
export function SignIn(): JSX.Element {
  const text = useSignal("");
  const error = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  const submit = async (): Promise<void> => {
    isBusy.value = true;
    try {
      await signIn(text.value.trim());
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      error.value = thrown.code === "unauthenticated" ? t("sign_in.no") : errorText(thrown);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <PageView title={t("sign_in.title")}>
      <form
        class="sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p>{t("sign_in.text")}</p>
        <TextField
          label={t("sign_in.token")}
          type="password"
          value={text.value}
          error={error.value}
          required
          autoFocus
          onInput={(value) => {
            text.value = value;
            error.value = undefined;
          }}
        />
        <Button look="main" type="submit" disabled={isBusy.value}>
          {t("sign_in.do")}
        </Button>
        <CliLine
          title={t("sign_in.cli")}
          line={cliLine(["token", "create", "console"], { observe: "*" })}
        />
      </form>
    </PageView>
  );
}
