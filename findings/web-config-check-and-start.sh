#!/usr/bin/env bash
# exporter-toolkit: a web configuration that its check accepts is one with which its server does not start
#
# One would guess: `promtool check web-config`, which calls the check of the toolkit, accepts the files with which a server of the toolkit starts.
# Versions: github.com/prometheus/exporter-toolkit 0.20.0, that of Prometheus 3.16 (Go).
# Seen: with a list of `cipher_suites` that has neither TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 nor TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, the check
#   says nothing, and the server ends at once: "http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher". HTTP/2 demands one
#   of the two and is on by default. With `http2: false` the server starts.
# Why it matters: the agent speaks HTTP/1.1 only and could use the file. It refuses it, because one file serves exporters and the agent:
#   src/config/web/web-config.ts, docs/access.md. `promtool` alone does not say which files those are.
set -euo pipefail
folder=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$folder"' EXIT
cd "$folder"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -subj /CN=server -days 2 -out server.crt 2>/dev/null
printf 'tls_server_config: {cert_file: server.crt, key_file: server.key, cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]}\n' > with.yml
{ cat with.yml; echo 'http_server_config: {http2: false}'; } > without.yml
cat > go.mod <<'END'
module finding

go 1.25
END
cat > main.go <<'END'
package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/exporter-toolkit/web"
)

func start(file string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	server := &http.Server{}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener, server, &web.FlagConfig{WebConfigFile: &file}, slog.New(slog.DiscardHandler)) }()
	// Until the server accepts, the handshake waits.
	served := make(chan struct{})
	go func() {
		if connection, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true}); err == nil {
			connection.Close()
			close(served)
		}
	}()
	select {
	case err := <-ended:
		return err.Error()
	case <-served:
		server.Close()
		return "it serves"
	}
}

func main() {
	fmt.Println("check:", web.Validate("with.yml"))
	fmt.Println("start:", start("with.yml"))
	fmt.Println("check without HTTP/2:", web.Validate("without.yml"))
	fmt.Println("start without HTTP/2:", start("without.yml"))
}
END
go get github.com/prometheus/exporter-toolkit@v0.20.0 >/dev/null 2>&1
GOFLAGS='-mod=mod -buildvcs=false' go run . | tee seen.txt
grep -qx 'check: <nil>' seen.txt
grep -q '^start: http2: TLSConfig.CipherSuites is missing an HTTP/2-required' seen.txt
grep -qx 'check without HTTP/2: <nil>' seen.txt
grep -qx 'start without HTTP/2: it serves' seen.txt
echo 'as described'
