#!/usr/bin/env bash
# CDI: a spec in JSON that was written over a longer one is read as the new spec, although the end of the old one still follows it
#
# One would guess: a file NAME.json with text after its object is no JSON, so it is left out, as a file that is half written.
# Versions: CDI library 1.1.2 with go.yaml.in/yaml/v3 3.0.5 (Go); js-yaml 5.5.0 (npm); Node.js 20.
# Seen: the library reads one document of YAML, and one that begins with a brace ends with its brace. Nobody looks at what follows: the end of the text before, a second
#   object, a word. Of two objects in one file the first one counts. Block style has no such end: there the rest makes the file invalid. js-yaml and JSON.parse refuse all of
#   them.
# Why it matters: src/host/documents/yaml-nodes.ts must take what the runtime takes. A driver that rewrites its spec in place without O_TRUNC leaves such files, and the runtime
#   gives containers the devices of the new text.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

quietly npm install --silent --no-audit --no-fund --no-package-lock --prefix . js-yaml@5.5.0
spec() { printf '{"cdiVersion":"0.6.0","kind":"vendor.com/gpu","devices":[{"name":"%s","containerEdits":{"env":["A=1"]}}]}' "$1"; }
block() { printf 'cdiVersion: 0.6.0\nkind: vendor.com/gpu\ndevices:\n- name: %s\n  containerEdits: {env: [A=1]}\n' "$1"; }
mkdir overwritten two-objects word block
spec a-longer-name > overwritten/a.json
# As open(2) without O_TRUNC.
spec new 1<> overwritten/a.json
{ spec first; spec second; } > two-objects/a.json
{ spec a; printf ' rest'; } > word/a.json
{ block a; printf '}\n'; } > block/a.yaml
cat > main.go <<'GO'
package main

import (
	"fmt"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func main() {
	for _, directory := range []string{"overwritten", "two-objects", "word", "block"} {
		cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(directory))
		if err != nil {
			panic(err)
		}
		fmt.Println("library:", directory, cache.ListDevices(), len(cache.GetErrors()))
	}
}
GO
cat > read.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
const takes = (parse, text) => {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
};
for (const name of ['overwritten', 'two-objects', 'word']) {
  const text = readFileSync(`${name}/a.json`, 'utf8');
  console.log(`Node.js: ${name} js-yaml ${takes(load, text)}, JSON.parse ${takes(JSON.parse, text)}`);
}
JS
quietly go mod init finding
quietly go get tags.cncf.io/container-device-interface@v1.1.2 go.yaml.in/yaml/v3@v3.0.5
quietly go mod tidy
quietly go build -o reader .
seen=$(
  ./reader
  node read.mjs
)
expected='library: overwritten [vendor.com/gpu=new] 0
library: two-objects [vendor.com/gpu=first] 0
library: word [vendor.com/gpu=a] 0
library: block [] 1
Node.js: overwritten js-yaml false, JSON.parse false
Node.js: two-objects js-yaml false, JSON.parse false
Node.js: word js-yaml false, JSON.parse false'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
