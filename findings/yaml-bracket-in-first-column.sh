#!/usr/bin/env bash
# YAML: a list that ends with "]" in the first column is a document for Kubernetes' tools and for js-yaml 4, and an error for js-yaml 5
#
# One would guess: what Kubernetes' tools, PyYAML and js-yaml 4 read, js-yaml 5 reads too.
# Versions: js-yaml 4.1.0 and 5.5.0, yaml 2.9.1 (npm); sigs.k8s.io/yaml 1.6.0, CDI library 1.1.2 (Go); PyYAML 6.0.2.
# Seen: js-yaml 5.5.0 keeps the rule of YAML 1.2 that everything inside of a mapping, also a closing bracket and the second line of a quoted text, stands
#   at least one column to the right: "deficient indentation". All others read the bracket, and all but yaml read the text. The CDI library offers the
#   device of such a file.
# Why it matters: src/host/documents/yaml.ts parses with js-yaml 5 what others wrote for the runtime. A CDI spec of this form gives containers their
#   devices, and the agent cannot read it (src/kubelet/claims/cdi-reader.ts); it names the file. The same holds for configurations that were written by hand.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

mkdir specs
cat > specs/bracket.yaml <<'YAML'
cdiVersion: "0.6.0"
kind: vendor.com/bracket
devices: [
  { name: "0", containerEdits: { deviceNodes: [{ path: /dev/null }] } }
]
YAML
cat > specs/text.yaml <<'YAML'
cdiVersion: "0.6.0"
kind: vendor.com/text
annotations:
  note: "two
lines"
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - path: /dev/null
YAML

quietly npm install --loglevel=error --no-audit --no-fund --no-package-lock --prefix . js-yaml4@npm:js-yaml@4.1.0 js-yaml5@npm:js-yaml@5.5.0 yaml@2.9.1
cat > read.cjs <<'JS'
const { readFileSync } = require('node:fs');
const readers = { 'js-yaml 4': require('js-yaml4').load, 'js-yaml 5': require('js-yaml5').load, yaml: require('yaml').parse };
for (const name of ['bracket', 'text'])
  for (const [reader, read] of Object.entries(readers)) {
    try {
      read(readFileSync(`specs/${name}.yaml`, 'utf8'));
      console.log(`${name}, ${reader}: read`);
    } catch (error) {
      console.log(`${name}, ${reader}: ${error.message.split('\n')[0]}`);
    }
  }
JS
quietly python3 -m venv python
quietly python/bin/pip install --quiet --disable-pip-version-check pyyaml==6.0.2
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func main() {
	for _, name := range []string{"bracket", "text"} {
		text, err := os.ReadFile("specs/" + name + ".yaml")
		if err != nil {
			panic(err)
		}
		var value any
		fmt.Printf("%s, sigs.k8s.io/yaml: %v\n", name, yaml.Unmarshal(text, &value))
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs("specs"), cdi.WithAutoRefresh(false))
	if err != nil {
		panic(err)
	}
	fmt.Println("CDI library:", cache.ListDevices(), len(cache.GetErrors()), "errors")
}
GO
quietly go mod init finding
quietly go get sigs.k8s.io/yaml@v1.6.0 tags.cncf.io/container-device-interface@v1.1.2
quietly go mod tidy
quietly go build -o reader .
seen=$(
  node read.cjs
  for name in bracket text; do
    python/bin/python -c "import sys, yaml; yaml.safe_load(open(sys.argv[1]))" "specs/$name.yaml" && echo "$name, PyYAML: read"
  done
  ./reader
)
expected='bracket, js-yaml 4: read
bracket, js-yaml 5: deficient indentation (5:1)
bracket, yaml: read
text, js-yaml 4: read
text, js-yaml 5: deficient indentation (5:1)
text, yaml: Missing closing "quote at line 4, column 13:
bracket, PyYAML: read
text, PyYAML: read
bracket, sigs.k8s.io/yaml: <nil>
text, sigs.k8s.io/yaml: <nil>
CDI library: [vendor.com/bracket=0 vendor.com/text=0] 0 errors'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
