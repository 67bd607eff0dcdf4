// The logo: a pulse that breaks and recovers.
import type { JSX } from "preact";

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect x="1" y="1" width="30" height="30" rx="8" />
      <path d="M5 18h6l3-9 5 15 3-6h5" />
    </svg>
  );
}
