// Untrusted text, with the occurrences of a query marked.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { clean, excerpt, matches } from "../text";

export function Text({ text, query = "" }: { text: string; query?: string }): JSX.Element {
  return <>{matches(text, query).map((part) => (part.match ? <mark>{part.text}</mark> : part.text))}</>;
}

interface BlockProps {
  text: string;
  label: string;
  query?: string;
  tone?: string;
}

// A block of text that is cut where it is long. It is shown in full where the query occurs beyond the cut.
export function Block({ text, label, query = "", tone = "" }: BlockProps): JSX.Element {
  const [open, setOpen] = useState(false);
  const whole = clean(text);
  const short = excerpt(whole);
  const beyond = query !== "" && whole.slice(short.text.length).toLowerCase().includes(query.toLowerCase());
  const full = open || beyond || short.hidden === 0;
  return (
    <div class={`block ${tone}`}>
      <pre tabIndex={0} role="region" aria-label={label}>
        <Text text={full ? whole : short.text} query={query} />
      </pre>
      {short.hidden > 0 && !beyond && (
        <button type="button" class="more" onClick={() => setOpen(!open)} aria-expanded={open}>
          {open ? "Show less" : `Show ${short.hidden.toLocaleString("en-US")} more characters`}
        </button>
      )}
    </div>
  );
}
