// What stands in the place of a document that has not come.
import type { JSX } from "preact";
import { clean } from "../text";

export function Waiting({ problem }: { problem: string | undefined }): JSX.Element {
  return <p role="status" class="empty">{problem ? `Error: ${clean(problem)}` : "Loading …"}</p>;
}
