#!/usr/bin/env bash
# node-problem-detector: a condition that is unknown carries the reason of a healthy node, and keeps its first message
#
# One would guess: a check that ends with status 2 gives a condition with status Unknown whose reason is that of the rule, and whose message is what
#   the check printed last, above all with enable_message_change_based_condition_update. A condition whose check has not run yet is not reported,
#   above all with skip_initial_status.
# Versions: node-problem-detector 1.36.0, its custom plugin monitor.
# Seen: the reason of an unknown condition is the default reason, which is written for the healthy state: "Unknown, NoDeviceIsUnhealthy". The message
#   of the first unknown result stays, although the check prints another one. With the first result of any check, all other conditions are
#   reported as False with their default message, before their checks ran once.
# Why it matters: deploy/node-problem-detector writes three conditions that are unknown while no agent answers. Its default reasons must be true for False and
#   for Unknown, and each condition needs a monitor of its own. A new cause (no agent, then an agent that stands still) is not seen in the condition.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	monitor "k8s.io/node-problem-detector/pkg/custompluginmonitor"
)

func main() {
	m := monitor.NewCustomPluginMonitorOrDie(os.Args[1])
	results, err := m.Start()
	if err != nil {
		panic(err)
	}
	for i := 1; i <= 4; i++ {
		for _, c := range (<-results).Conditions {
			fmt.Printf("result %d: %s %s %s %q\n", i, c.Type, c.Status, c.Reason, c.Message)
		}
		if err := os.WriteFile("check.printed", nil, 0o644); err != nil {
			panic(err)
		}
	}
}
GO
go mod init finding > go.log 2>&1
{ go get k8s.io/node-problem-detector@v1.36.0 && go mod tidy && go build -o detector .; } >> go.log 2>&1 || { cat go.log >&2; exit 1; }

# Two checks, asked in turn: each of the two runs twice. The second one waits until the first result is printed.
cat > check <<'SH'
#!/bin/sh
[ "$1" = sick ] || until [ -e "$0.printed" ]; do sleep 0.1; done
echo x >> "$0.$1"
echo "cause $(wc -l < "$0.$1")"
exit 2
SH
chmod +x check
cat > config.json <<JSON
{
  "plugin": "custom",
  "pluginConfig": {
    "invoke_interval": "1s", "timeout": "60s", "max_output_length": 80, "concurrency": 1,
    "enable_message_change_based_condition_update": true, "skip_initial_status": true
  },
  "source": "finding",
  "metricsReporting": false,
  "conditions": [
    { "type": "Sick", "reason": "NobodyIsSick", "message": "nobody is sick" },
    { "type": "Absent", "reason": "NobodyIsAbsent", "message": "nobody is absent" }
  ],
  "rules": [
    { "type": "permanent", "condition": "Sick", "reason": "SomebodyIsSick", "path": "$work/check", "args": ["sick"] },
    { "type": "permanent", "condition": "Absent", "reason": "SomebodyIsAbsent", "path": "$work/check", "args": ["absent"] }
  ]
}
JSON
seen=$(./detector config.json 2> detector.log) || { cat detector.log >&2; exit 1; }
expected='result 1: Sick Unknown NobodyIsSick "cause 1"
result 1: Absent False NobodyIsAbsent "nobody is absent"
result 2: Sick Unknown NobodyIsSick "cause 1"
result 2: Absent Unknown NobodyIsAbsent "cause 1"
result 3: Sick Unknown NobodyIsSick "cause 1"
result 3: Absent Unknown NobodyIsAbsent "cause 1"
result 4: Sick Unknown NobodyIsSick "cause 1"
result 4: Absent Unknown NobodyIsAbsent "cause 1"'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
