// Copies text to the clipboard; where the browser refuses that, the text is shown for copying by hand.
import type { JSX } from "preact";
import { useState } from "preact/hooks";

interface CopyProps {
  label: string;
  text: () => string;
  id: string;
}

export function CopyButton({ label, text, id }: CopyProps): JSX.Element {
  const [state, setState] = useState<"" | "copied" | "shown">("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      setState("copied");
    } catch {
      setState("shown");
    }
  };
  return (
    <>
      <button type="button" id={id} onClick={() => void copy()}>
        {label}
      </button>
      <span role="status">{state === "copied" ? "copied" : ""}</span>
      {state === "shown" && (
        <textarea class="copied" aria-label={`${label}: text to copy`} readOnly value={text()} onFocus={(event) => event.currentTarget.select()} />
      )}
    </>
  );
}
