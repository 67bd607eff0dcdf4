// Requests to the server, and polling of what may change.
import { useEffect, useRef, useState } from "preact/hooks";

export class ApiError extends Error {}

const POLL_MILLISECONDS = 2000;

export async function request<T>(path: string, tag?: string): Promise<{ value: T; tag: string } | undefined> {
  const response = await fetch(path, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
  if (response.status === 304) return undefined;
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const message = body && typeof body === "object" && "error" in body ? String(body.error) : response.statusText;
    throw new ApiError(message);
  }
  return { value: body as T, tag: response.headers.get("etag") ?? "" };
}

// Send a change to the server.
export async function send(path: string, body: Record<string, unknown>): Promise<unknown> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    cache: "no-store",
  });
  const answer: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    throw new ApiError(answer && typeof answer === "object" && "error" in answer ? String(answer.error) : response.statusText);
  }
  return answer;
}

export interface Loaded<T> {
  value?: T;
  problem?: string;
  reload?: () => void;
}

// Load a document, and load it again every few seconds while `live` says so and the page is visible.
export function useDocument<T>(path: string, live: (value: T) => boolean, interval = POLL_MILLISECONDS): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({});
  const [turn, setTurn] = useState(0);
  const shownPath = useRef("");
  const isLive = useRef(live);
  isLive.current = live;
  useEffect(() => {
    let stopped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let tag = "";
    let last: T | undefined;
    const load = async (): Promise<void> => {
      if (last === undefined || !document.hidden) {
        try {
          const answer = await request<T>(path, tag);
          if (stopped) return;
          if (answer) {
            tag = answer.tag;
            last = answer.value;
            setLoaded({ value: answer.value });
          }
        } catch (error) {
          if (stopped) return;
          const problem = error instanceof ApiError ? error.message : "the server does not answer: is it still running?";
          setLoaded((before) => ({ ...before, problem }));
          if (last === undefined && error instanceof ApiError) return;
        }
      }
      if (last === undefined || isLive.current(last)) timer = setTimeout(load, interval);
    };
    if (shownPath.current !== path) setLoaded({});
    shownPath.current = path;
    if (path) void load();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [path, turn]);
  return { ...loaded, reload: () => setTurn((before) => before + 1) };
}
