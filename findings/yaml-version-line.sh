#!/usr/bin/env bash
# YAML: a file that says "%YAML 1.2" is refused by the parsers of Kubernetes, and the same file with "%YAML 1.1" or without a version is read
#
# One would guess: a parser that reads a document without a version line reads it with the line of the present version of YAML, too.
# Versions: sigs.k8s.io/yaml 1.6.0, go.yaml.in/yaml/v3 3.0.5, CDI library 1.1.2 (Go); js-yaml 5.5.0, yaml 2.9.1 (npm).
# Seen: both parsers of Go answer "found incompatible YAML document" to 1.2, also version 3, which is for YAML 1.2; they read 1.1. So the CDI library
#   leaves out a spec with the line of 1.2, and containers do not get its devices. js-yaml reads both lines and ignores what they say; yaml obeys: with
#   1.1 "fileMode: 010" is 8, and 10 without it.
# Why it matters: src/kubelet/claims/cdi-reader.ts must use the files that the runtime uses. js-yaml reads a spec that no container gets, and
#   such a spec must not give a device a second holder or a conflict: src/host/documents/yaml-nodes.ts refuses it.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

mkdir specs
spec() {
  cat <<YAML
cdiVersion: "0.6.0"
kind: vendor.com/$1
devices:
  - name: "0"
    containerEdits: { deviceNodes: [{ path: /dev/null, fileMode: 010 }] }
YAML
}
spec plain > specs/plain.yaml
{ printf '%%YAML 1.1\n---\n'; spec version-1.1; } > specs/version-1.1.yaml
{ printf '%%YAML 1.2\n---\n'; spec version-1.2; } > specs/version-1.2.yaml

quietly npm install --loglevel=error --no-audit --no-fund --no-package-lock --prefix . js-yaml@5.5.0 yaml@2.9.1
cat > read.cjs <<'JS'
const { readFileSync } = require('node:fs');
for (const [reader, read] of Object.entries({ 'js-yaml': require('js-yaml').load, yaml: require('yaml').parse }))
  for (const name of ['plain', 'version-1.1', 'version-1.2']) {
    const { devices } = read(readFileSync(`specs/${name}.yaml`, 'utf8'));
    console.log(`${reader}, ${name}: fileMode ${devices[0].containerEdits.deviceNodes[0].fileMode}`);
  }
JS
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func main() {
	for _, name := range []string{"plain", "version-1.1", "version-1.2"} {
		text, err := os.ReadFile("specs/" + name + ".yaml")
		if err != nil {
			panic(err)
		}
		var value any
		fmt.Printf("sigs.k8s.io/yaml, %s: %v\n", name, yaml.Unmarshal(text, &value))
		fmt.Printf("go.yaml.in/yaml/v3, %s: %v\n", name, yaml3.Unmarshal(text, &value))
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs("specs"), cdi.WithAutoRefresh(false))
	if err != nil {
		panic(err)
	}
	fmt.Println("CDI library:", cache.ListDevices(), len(cache.GetErrors()), "error")
}
GO
quietly go mod init finding
quietly go get sigs.k8s.io/yaml@v1.6.0 go.yaml.in/yaml/v3@v3.0.5 tags.cncf.io/container-device-interface@v1.1.2
quietly go mod tidy
quietly go build -o reader .
seen=$(
  ./reader
  node read.cjs
)
expected='sigs.k8s.io/yaml, plain: <nil>
go.yaml.in/yaml/v3, plain: <nil>
sigs.k8s.io/yaml, version-1.1: <nil>
go.yaml.in/yaml/v3, version-1.1: <nil>
sigs.k8s.io/yaml, version-1.2: error converting YAML to JSON: yaml: found incompatible YAML document
go.yaml.in/yaml/v3, version-1.2: yaml: found incompatible YAML document
CDI library: [vendor.com/plain=0 vendor.com/version-1.1=0] 1 error
js-yaml, plain: fileMode 10
js-yaml, version-1.1: fileMode 10
js-yaml, version-1.2: fileMode 10
yaml, plain: fileMode 10
yaml, version-1.1: fileMode 8
yaml, version-1.2: fileMode 10'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
