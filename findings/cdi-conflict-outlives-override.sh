#!/usr/bin/env bash
# CDI: a spec in /var/run/cdi overrides one in /etc/cdi, but not two: a device that two files of the lower directory have is gone, whatever the upper directory says
#
# One would guess: a directory of higher priority decides alone about the names that it has. So a conflict in /etc/cdi does not matter for a device that a driver writes to /var/run/cdi,
#   as one spec there does not matter.
# Versions: CDI library 1.0.1 and 1.1.2 (Go), the same in both.
# Seen: the library finds conflicts in each directory while it goes up, and deletes those names at the end, also where a later directory replaced them. The device cannot be
#   injected ("unresolvable CDI devices"). When one of the two lower files goes away, it can. The error names only the two lower files.
# Why it matters: src/kubelet/claims/cdi-reader.ts must not take the device of the upper directory for one that a container can have.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

spec() { printf 'cdiVersion: 0.6.0\nkind: vendor.com/gpu\ndevices:\n- name: a\n  containerEdits: {env: [FROM=%s]}\n' "$1"; }
mkdir etc run
spec run > run/driver.yaml
cat > main.go <<'GO'
package main

import (
	"fmt"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func main() {
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs("etc", "run"))
	if err != nil {
		panic(err)
	}
	container := &oci.Spec{Process: &oci.Process{}}
	_, err = cache.InjectDevices(container, "vendor.com/gpu=a")
	_, isNamed := cache.GetErrors()["run/driver.yaml"]
	fmt.Println(container.Process.Env, err, isNamed)
}
GO
seen=
for version in 1.0.1 1.1.2; do
  rm -f go.mod go.sum
  quietly go mod init finding
  quietly go get "tags.cncf.io/container-device-interface@v$version"
  quietly go mod tidy
  quietly go build -o injector .
  rm -f etc/*
  seen+="$version, run: $(./injector)
"
  spec etc > etc/one.yaml
  seen+="$version, run and one of etc: $(./injector)
"
  spec etc > etc/two.yaml
  seen+="$version, run and two of etc: $(./injector)
"
done
expected=
for version in 1.0.1 1.1.2; do
  expected+="$version, run: [FROM=run] <nil> false
$version, run and one of etc: [FROM=run] <nil> false
$version, run and two of etc: [] unresolvable CDI devices vendor.com/gpu=a false
"
done
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
