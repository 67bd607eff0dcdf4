// Text of agents and clusters. It is only ever put into text nodes; what would be invisible or would reorder the line
// (control characters, terminal escapes, bidirectional marks) is shown as a symbol.

// eslint-disable-next-line no-control-regex
const TERMINAL = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function clean(value: unknown): string {
  const text = typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
  return text
    .replace(/\r\n?/g, "\n")
    .replace(TERMINAL, "")
    .replace(CONTROL, (character) => {
      const code = character.charCodeAt(0);
      return code < 32 ? String.fromCharCode(0x2400 + code) : "\ufffd";
    });
}

export interface Excerpt {
  text: string;
  hidden: number;
}

// The beginning of a long text, cut at a line where there is one.
export function excerpt(text: string, lines = 24, characters = 3000): Excerpt {
  let end = 0;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf("\n", end);
    if (next < 0) {
      end = text.length;
      break;
    }
    end = next + 1;
  }
  end = Math.min(end, characters, text.length);
  return { text: text.slice(0, end), hidden: text.length - end };
}

export interface Part {
  text: string;
  match: boolean;
}

// Split a text at the places where a query occurs, without regard to case.
export function matches(text: string, query: string): Part[] {
  if (!query) return [{ text, match: false }];
  const parts: Part[] = [];
  const lower = text.toLowerCase();
  const wanted = query.toLowerCase();
  // Some characters change their length in lower case; positions would be wrong then.
  if (lower.length !== text.length) return [{ text, match: lower.includes(wanted) }];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    if (at > from) parts.push({ text: text.slice(from, at), match: false });
    parts.push({ text: text.slice(at, at + wanted.length), match: true });
    from = at + wanted.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), match: false });
  return parts;
}
