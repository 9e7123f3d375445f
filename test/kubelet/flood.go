package main

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	listerv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const floodClients = 4

// flood is another client of the socket that asks far more often than the kubelet's limit allows. A question for a pod that
// is not there costs the kubelet next to nothing and takes its token all the same.
func flood(k *kubelet, r request) (any, error) {
	target := "unix:" + k.pathOf("pod-resources", "kubelet.sock")
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	client := listerv1.NewPodResourcesListerClient(connection)
	end := time.Now().Add(time.Duration(r.ForMs) * time.Millisecond)
	var mu sync.Mutex
	var asked, rejected int
	var clients sync.WaitGroup
	for range floodClients {
		clients.Go(func() {
			for time.Now().Before(end) {
				_, err := client.Get(context.Background(), &listerv1.GetPodResourcesRequest{PodName: "none", PodNamespace: "none"})
				mu.Lock()
				asked++
				if status.Code(err) == codes.ResourceExhausted {
					rejected++
				}
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	clients.Wait()
	return map[string]int{"asked": asked, "rejected": rejected}, nil
}
