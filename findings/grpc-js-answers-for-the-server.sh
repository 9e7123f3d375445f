#!/usr/bin/env bash
# grpc-js: a call that a Go server answered with OK fails with RESOURCE_EXHAUSTED when the answer has more than 126 pairs of metadata
#
# One would guess: RESOURCE_EXHAUSTED is a status of the server (a rate limit, a quota), or the text says "larger than max"; metadata that the server may send, and that
#   the Go client reads, is no reason to lose a message that has arrived.
# Versions: @grpc/grpc-js 1.14.7 on Node.js 20 and later; google.golang.org/grpc 1.84.0.
# Seen: Node.js takes 128 headers in one block by default (maxHeaderListPairs), and grpc-status and grpc-message are two of them. With one more it ends the stream,
#   and grpc-js says RESOURCE_EXHAUSTED, "Bandwidth exhausted or memory limit exceeded", although the server sent a message and OK. The Go client gets
#   message and metadata. Later calls succeed.
# Why it matters: src/kubelet/client/client.ts takes RESOURCE_EXHAUSTED for the rate limit of the kubelet or for an answer that is too large, by its text. A third text
#   comes from Node.js itself and says nothing about the kubelet.
set -euo pipefail

work=$(mktemp -d)
export GOFLAGS=-modcacherw
server=
trap '[ -z "$server" ] || kill "$server" || true; rm -rf "$work"' EXIT
cd "$work"
quietly() { "$@" > quiet.log 2>&1 || { cat quiet.log >&2; exit 1; }; }

quietly npm install --loglevel=error --no-audit --no-fund --no-package-lock --prefix . @grpc/grpc-js@1.14.7
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// answer sends its request back, with as many pairs in the trailer as the request says.
func answer(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var request wrapperspb.StringValue
	if err := decode(&request); err != nil {
		return nil, err
	}
	pairs, err := strconv.Atoi(request.Value)
	if err != nil {
		return nil, err
	}
	trailer := metadata.MD{}
	for i := range pairs {
		trailer.Append("pair-"+strconv.Itoa(i), "x")
	}
	return &request, grpc.SetTrailer(ctx, trailer)
}

func main() {
	if os.Args[1] == "serve" {
		listener, err := net.Listen("unix", "server.sock")
		if err != nil {
			panic(err)
		}
		server := grpc.NewServer()
		server.RegisterService(&grpc.ServiceDesc{ServiceName: "T", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: answer}}}, nil)
		fmt.Println("serves")
		panic(server.Serve(listener))
	}
	client, err := grpc.NewClient("unix:server.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	for _, pairs := range os.Args[1:] {
		var trailer metadata.MD
		var message wrapperspb.StringValue
		err := client.Invoke(context.Background(), "/T/Call", wrapperspb.String(pairs), &message, grpc.Trailer(&trailer))
		fmt.Printf("Go, %s pairs: %s, message %q, %d pairs\n", pairs, status.Code(err), message.Value, len(trailer))
	}
}
GO
cat > client.cjs <<'JS'
const grpc = require('@grpc/grpc-js');
const client = new grpc.Client('unix:server.sock', grpc.credentials.createInsecure());
const encode = (text) => Buffer.concat([Buffer.from([10, text.length]), Buffer.from(text)]);
const decode = (bytes) => bytes.subarray(2).toString();
const call = (pairs) =>
  new Promise((resolve) => {
    client.makeUnaryRequest('/T/Call', encode, decode, pairs, new grpc.Metadata(), { deadline: Date.now() + 60_000 }, (error, message) => {
      const { code, details } = error ?? { code: grpc.status.OK, details: '' };
      console.log(`grpc-js, ${pairs} pairs: ${grpc.status[code]} ${details}, message ${JSON.stringify(message)}`);
      resolve();
    });
  });
(async () => {
  for (const pairs of process.argv.slice(2)) await call(pairs);
  client.close();
})();
JS
quietly go mod init finding
quietly go get google.golang.org/grpc@v1.84.0
quietly go mod tidy
quietly go build -o peer .
mkfifo ready
./peer serve > ready &
server=$!
read -r _ < ready
seen=$(
  ./peer 1 126 127 1000
  node client.cjs 1 126 127 1000 1
)
expected='Go, 1 pairs: OK, message "1", 1 pairs
Go, 126 pairs: OK, message "126", 126 pairs
Go, 127 pairs: OK, message "127", 127 pairs
Go, 1000 pairs: OK, message "1000", 1000 pairs
grpc-js, 1 pairs: OK , message "1"
grpc-js, 126 pairs: OK , message "126"
grpc-js, 127 pairs: RESOURCE_EXHAUSTED Bandwidth exhausted or memory limit exceeded, message undefined
grpc-js, 1000 pairs: RESOURCE_EXHAUSTED Bandwidth exhausted or memory limit exceeded, message undefined
grpc-js, 1 pairs: OK , message "1"'
echo "$seen"
if [ "$seen" != "$expected" ]; then
  printf 'not as described, expected:\n%s\n' "$expected" >&2
  exit 1
fi
echo 'as described'
