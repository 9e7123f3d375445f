// A List call of the kubelet from Go: one line on standard input has it make one call and say, in microseconds of CPU, what the call
// took and what the process took since the call before, and how many bytes the answer has. Argument: socket.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func cpuMicros() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano()/1000 + usage.Stime.Nano()/1000
}

func main() {
	connection, err := grpc.NewClient("unix:"+os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	client := podresources.NewPodResourcesListerClient(connection)
	last := cpuMicros()
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		before := cpuMicros()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		answer, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
		cancel()
		if err != nil {
			panic(err)
		}
		call := cpuMicros() - before
		fmt.Println(call, before-last, proto.Size(answer))
		last = before
	}
}
