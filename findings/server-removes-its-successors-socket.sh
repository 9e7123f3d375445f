#!/usr/bin/env bash
# Unix sockets: a gRPC server that ends removes the socket of the server that has replaced it, in Node.js and in Go
#
# One would guess: a server that ends removes its own socket. When a newer server has removed that file and made its own at the same path, there is nothing to do.
# Versions: @grpc/grpc-js 1.14.7 on Node.js 20 and later; google.golang.org/grpc 1.84.0.
# Seen: both remove whatever is at the path. The newer server goes on to listen and to serve its old connections, and nobody can connect to it any more.
# Why it matters: two agents, or two device plugins of one resource, share a directory during each rollout. src/host/fs/own-socket.ts binds another path,
#   renames the socket into place, and removes it only while it is its own.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
trap 'rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

quietly npm install --loglevel=error --no-audit --no-fund --no-package-lock --prefix . @grpc/grpc-js@1.14.7
cat > servers.cjs <<'JS'
const { existsSync, unlinkSync } = require('node:fs');
const { connect } = require('node:net');
const { Server, ServerCredentials } = require('@grpc/grpc-js');
const start = () =>
  new Promise((resolve, reject) => {
    const server = new Server();
    server.bindAsync('unix:node.sock', ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve(server)));
  });
const answer = () =>
  new Promise((resolve) => {
    const socket = connect('node.sock')
      .on('connect', () => socket.end(() => resolve('connects')))
      .on('error', ({ code }) => resolve(code));
  });
(async () => {
  const older = await start();
  unlinkSync('node.sock');
  const newer = await start();
  console.log(`grpc-js: with both: ${await answer()}`);
  older.forceShutdown();
  console.log(`grpc-js: after the older one: ${await answer()}, file ${existsSync('node.sock')}`);
  newer.forceShutdown();
})();
JS
cat > main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc"
)

func start() *grpc.Server {
	listener, err := net.Listen("unix", "go.sock")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer()
	serving := make(chan struct{})
	go func() {
		close(serving)
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			panic(err)
		}
	}()
	<-serving
	return server
}

func answer() string {
	connection, err := net.Dial("unix", "go.sock")
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return map[syscall.Errno]string{syscall.ENOENT: "ENOENT", syscall.ECONNREFUSED: "ECONNREFUSED"}[errno]
	}
	connection.Close()
	return "connects"
}

func main() {
	older := start()
	if err := os.Remove("go.sock"); err != nil {
		panic(err)
	}
	newer := start()
	fmt.Println("grpc-go: with both:", answer())
	older.Stop()
	_, err := os.Lstat("go.sock")
	fmt.Printf("grpc-go: after the older one: %s, file %t\n", answer(), err == nil)
	newer.Stop()
}
GO
quietly go mod init finding
quietly go get google.golang.org/grpc@v1.84.0
quietly go mod tidy
quietly go build -o servers .
seen=$(
  node servers.cjs
  ./servers
)
expected='grpc-js: with both: connects
grpc-js: after the older one: ENOENT, file false
grpc-go: with both: connects
grpc-go: after the older one: ENOENT, file false'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
