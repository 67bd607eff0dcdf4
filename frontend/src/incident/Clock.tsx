// The clock of an embedded cluster: pause, speed and advance.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { send } from "../api";
import * as format from "../format";
import type { Overview } from "../incident-types";

const SPEEDS = [1, 5, 20];
const STEPS: [number, string][] = [[60, "1 min"], [300, "5 min"], [1800, "30 min"]];

export function Clock({ incident, onChange }: { incident: Overview; onChange: () => void }): JSX.Element {
  const [state, setState] = useState<{ busy: boolean; problem: string }>({ busy: false, problem: "" });
  const clock = incident.clock;
  const set = async (action: string, value: number): Promise<void> => {
    setState({ busy: true, problem: "" });
    try {
      await send("api/incident/clock", { id: incident.id, action, value });
      setState({ busy: false, problem: "" });
    } catch (error) {
      setState({ busy: false, problem: error instanceof Error ? error.message : "the clock does not answer" });
    }
    onChange();
  };
  return (
    <div class="clock" role="group" aria-label="Clock">
      <span class="clock-time" id="clock-time">
        {format.time(incident.now)} <span class="soft">UTC</span>
      </span>
      {clock && (
        <>
          {!clock.stands && <span class="segmented" role="group" aria-label="Speed">
            <button type="button" aria-pressed={clock.speed === 0} onClick={() => void set("speed", 0)}>Pause</button>
            {SPEEDS.map((speed) => (
              <button type="button" aria-pressed={clock.speed === speed} onClick={() => void set("speed", speed)}>{speed}×</button>
            ))}
          </span>}
          <span class="segmented" role="group" aria-label="Advance">
            {STEPS.map(([seconds, label]) => (
              <button type="button" disabled={state.busy} onClick={() => void set("advance", seconds)}>+{label}</button>
            ))}
          </span>
        </>
      )}
      <span role="status" class="soft">{state.problem || (state.busy ? "advancing …" : clock?.stands ? "stands still" : clock?.speed === 0 ? "paused" : "")}</span>
    </div>
  );
}
