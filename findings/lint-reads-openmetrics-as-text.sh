#!/usr/bin/env bash
# promtool: the lint of pages reads OpenMetrics as the other format, and says so of nothing
#
# One would guess: `promtool check metrics` checks what a server of Prometheus scrapes, and servers prefer OpenMetrics.
# Versions: promlint, which promtool calls, of github.com/prometheus/client_golang 1.14.0 with common 0.39.0 (Prometheus 2.42) and of 1.25.0 with common
#   0.72.1 (Prometheus 3.16); the parser of OpenMetrics of github.com/prometheus/prometheus 0.316.0 (Go).
# Seen: a valid page is read as text format 0.0.4, where `# UNIT` and `# EOF` are comments. Each counter has "no help text" (1.25.0), because its HELP has no
#   `_total`; 1.14.0 ends with "invalid escape sequence" at an escaped quote in HELP, which OpenMetrics demands. The parser of OpenMetrics reads the page.
# Why it matters: the OpenMetrics page of the agent is right, though the lint has something to say: test/metrics/exposition.test.ts. Real servers scrape it in
#   test/server/prometheus.test.ts.
set -euo pipefail
folder=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf '# HELP jobs Jobs that are "done".\n# TYPE jobs counter\njobs_total 1\n# EOF\n' | sed '1s/"/\\"/g' > page.txt
# program FOLDER FILE MODULE@VERSION...: runs a program with these modules.
program() {
  mkdir "$1"
  cp "$2" "$1/main.go"
  printf 'module finding\n\ngo 1.25\n' > "$1/go.mod"
  (cd "$1" && shift 2 && go get "$@" && GOFLAGS='-mod=mod -buildvcs=false' go run .) 2>"$1.log" <page.txt || { cat "$1.log" >&2; return 1; }
}
cat > parse.go <<'END'
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

func main() {
	page, _ := io.ReadAll(os.Stdin)
	parser := textparse.NewOpenMetricsParser(page, labels.NewSymbolTable())
	samples := 0
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println("OpenMetrics:", err)
			return
		}
		if entry == textparse.EntrySeries {
			samples++
		}
	}
	fmt.Println("OpenMetrics:", samples, "sample")
}
END
cat > lint.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func main() {
	problems, err := promlint.New(os.Stdin).Lint()
	if err != nil {
		fmt.Println(err)
	}
	for _, problem := range problems {
		fmt.Printf("%s: %s\n", problem.Metric, problem.Text)
	}
}
END
parsed=$(program parse parse.go github.com/prometheus/prometheus@v0.316.0)
older=$(program older lint.go github.com/prometheus/client_golang@v1.14.0 github.com/prometheus/common@v0.39.0)
newer=$(program newer lint.go github.com/prometheus/client_golang@v1.25.0 github.com/prometheus/common@v0.72.1)
printf '%s\n1.14.0: %s\n1.25.0: %s\n' "$parsed" "$older" "$newer"
[ "$parsed" = 'OpenMetrics: 1 sample' ]
[ "$older" = "text format parsing error in line 1: invalid escape sequence '\\\"'" ]
[ "$newer" = 'jobs_total: no help text' ]
echo 'as described'
