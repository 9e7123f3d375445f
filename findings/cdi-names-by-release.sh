#!/usr/bin/env bash
# CDI: a patch release of the library renames devices: what 1.1.0 knows as 7, 16, 1000 and true is 007, 0x10, 1e3 and yes from 1.1.1 on
#
# One would guess: a patch release of the library reads the same files as the same devices. A pod that got vendor.com/gpu=7 yesterday gets it after the runtime was updated.
# Versions: CDI library 1.1.0 (sigs.k8s.io/yaml 1.4.0 below it) and 1.1.1, 1.1.2 (go.yaml.in/yaml/v3).
# Seen: 1.1.0 turns YAML into JSON first, so a name without quotes becomes a number or a boolean, and then the text of that. From 1.1.1 on a name is the text in the file. A file
#   in which two names become one (1000 and 1e3) has no device for 1.1.0, and two for 1.1.1. A field in another case (Kind) and a second merge key are taken by
#   1.1.0, and make the whole file invalid for 1.1.1.
# Why it matters: a claim names its device as text, and src/kubelet/claims/cdi-reader.ts looks for that text. It reads names as 1.1.2 does; on a node with an older
#   runtime a driver that writes `name: 007` asks for 7. docs/dra.md says so.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

spec() { printf '%s: 0.6.0\n%s: vendor.com/gpu\ndevices:\n' "$1" "$2"; }
device() { printf -- '- name: %s\n  containerEdits: {env: [A=1]}\n' "$1"; }
mkdir -p names twice case merges
{ spec cdiVersion kind; for name in 007 0x10 1e3 1.0 yes 2026; do device "$name"; done; } > names/a.yaml
{ spec cdiVersion kind; device 1000; device 1e3; } > twice/a.yaml
{ spec CdiVersion Kind; device a; } > case/a.yaml
{ spec cdiVersion kind; printf -- '- name: a\n  <<: {annotations: {b: c}}\n  <<: {containerEdits: {env: [A=1]}}\n'; } > merges/a.yaml
cat > main.go <<'GO'
package main

import (
	"fmt"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func main() {
	for _, directory := range []string{"names", "twice", "case", "merges"} {
		cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(directory))
		if err != nil {
			panic(err)
		}
		fmt.Println(directory, cache.ListDevices())
	}
}
GO
seen=
for version in 1.1.0 1.1.1 1.1.2; do
  rm -f go.mod go.sum
  quietly go mod init finding
  quietly go get "tags.cncf.io/container-device-interface@v$version"
  quietly go mod tidy
  quietly go build -o reader .
  seen+="$version
$(./reader)
"
done
new='names [vendor.com/gpu=007 vendor.com/gpu=0x10 vendor.com/gpu=1.0 vendor.com/gpu=1e3 vendor.com/gpu=2026 vendor.com/gpu=yes]
twice [vendor.com/gpu=1000 vendor.com/gpu=1e3]
case []
merges []'
expected="1.1.0
names [vendor.com/gpu=1 vendor.com/gpu=1000 vendor.com/gpu=16 vendor.com/gpu=2026 vendor.com/gpu=7 vendor.com/gpu=true]
twice []
case [vendor.com/gpu=a]
merges [vendor.com/gpu=a]
1.1.1
$new
1.1.2
$new
"
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
