#!/usr/bin/env bash
# CDI: the library reads NAME.json by a parser of YAML 1.1, so what some JSON writers print by default is no spec
#
# One would guess: each file that is valid JSON and has valid content is a spec; YAML takes all JSON.
# Versions: CDI library 1.1.2 with sigs.k8s.io/yaml 1.6.0 (Go); ujson 5.10.0 (PyPI), whose dumps() escapes "/" by default, as json-c and PHP do; json of Python,
#   whose dumps() escapes what is not ASCII by default.
# Seen: `\/` is an "unknown escape character", the two escapes of a letter above U+FFFF are an "invalid Unicode character escape code", and a key of more
#   than 1,024 bytes ends in "did not find expected ',' or '}'". The file is left out, and its devices do not exist for containers. Node.js and Python
#   read all of them.
# Why it matters: src/kubelet/claims/cdi-reader.ts must use the files that the runtime uses, so src/host/documents/yaml-nodes.ts refuses the two escapes. A driver
#   written in C with json-c has such specs.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

quietly python3 -m venv python
quietly python/bin/pip install --quiet --disable-pip-version-check ujson==5.10.0
mkdir specs
cat > write.py <<'PY'
import json
import ujson


def write(name, dumps, annotations):
    edits = {"deviceNodes": [{"path": "/dev/null"}]}
    spec = {"cdiVersion": "0.6.0", "kind": "vendor.com/" + name, "annotations": annotations, "devices": [{"name": "0", "containerEdits": edits}]}
    with open("specs/" + name + ".json", "w") as file:
        file.write(dumps(spec))


write("plain", json.dumps, {"note": "x"})
write("ujson", ujson.dumps, {"note": "x"})
write("letter", json.dumps, {"note": "\U00020BB7"})
write("key-of-1000", json.dumps, {"k" * 1000: "x"})
write("key-of-1100", json.dumps, {"k" * 1100: "x"})
PY
python/bin/python write.py
cat > main.go <<'GO'
package main

import (
	"fmt"
	"path/filepath"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func main() {
	for _, name := range []string{"plain", "ujson", "letter", "key-of-1000", "key-of-1100"} {
		_, err := cdi.ReadSpec(filepath.Join("specs", name+".json"), 0)
		fmt.Printf("%s: %v\n", name, err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs("specs"), cdi.WithAutoRefresh(false))
	if err != nil {
		panic(err)
	}
	fmt.Println("devices:", cache.ListDevices())
}
GO
quietly go mod init finding
quietly go get sigs.k8s.io/yaml@v1.6.0 tags.cncf.io/container-device-interface@v1.1.2
quietly go mod tidy
quietly go build -o reader .
seen=$(
  ./reader
  node -e 'const { readdirSync, readFileSync } = require("node:fs"); for (const name of readdirSync("specs")) JSON.parse(readFileSync(`specs/${name}`, "utf8")); console.log("Node.js reads all")'
)
failed='failed to parse CDI Spec "specs'
yaml='failed to unmarshal CDI Spec: yaml:'
expected="plain: <nil>
ujson: $failed/ujson.json\": $yaml found unknown escape character
letter: $failed/letter.json\": $yaml found invalid Unicode character escape code
key-of-1000: <nil>
key-of-1100: $failed/key-of-1100.json\": $yaml did not find expected ',' or '}'
devices: [vendor.com/key-of-1000=0 vendor.com/plain=0]
Node.js reads all"
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
