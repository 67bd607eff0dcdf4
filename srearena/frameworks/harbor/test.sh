#!/bin/bash
# Ends the agent's part and asks the grader in the other container; the key comes with this folder.
set -uo pipefail
logs=${LOGS:-/logs/verifier}
mkdir -p "$logs"
if arena grade "$(dirname "$0")/key" > "$logs/grade.json"; then
  python3 -c 'import json, sys; print(float(json.load(sys.stdin)["passed"]))' < "$logs/grade.json" > "$logs/reward.txt"
else
  echo "the episode could not be graded" >&2
  exit 1
fi
