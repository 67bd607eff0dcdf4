// Keys of a page. Keys that are typed into a control are left to it.
import { useEffect, useRef } from "preact/hooks";

export type Keys = Record<string, () => void>;

export function useKeys(keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement | null;
      const typing = target?.matches?.("input, textarea, select") ?? false;
      if (typing && event.key === "Escape") target?.blur();
      if (typing) return;
      const handler = current.current[event.key];
      if (!handler) return;
      event.preventDefault();
      handler();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}
