// Answers the kubelet's health stream of a DRA driver from the health feed of the agent. It is one more file of the driver's own
// package, and the driver embeds feedHealth: kubeletplugin then serves the stream. The driver looks its devices up by PCI address.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

// feedHealth finds the socket of the agent in HEALTH_FEED, its own pool in HEALTH_POOL, and its devices in HEALTH_DEVICES, as
// "g-0=0000:1a:00.0,g-1=…".
type feedHealth struct {
	health.UnimplementedDRAResourceHealthServer
}

func (f feedHealth) NodeWatchResources(_ *health.NodeWatchResourcesRequest, out health.DRAResourceHealth_NodeWatchResourcesServer) error {
	for out.Context().Err() == nil {
		if err := f.follow(out); err != nil {
			fmt.Println("health feed:", err)
		}
		// The agent may be away, for an update. The kubelet forgets the last list by itself.
		time.Sleep(200 * time.Millisecond)
	}
	return out.Context().Err()
}

func (f feedHealth) follow(out health.DRAResourceHealth_NodeWatchResourcesServer) error {
	connection, err := grpc.NewClient("unix:"+os.Getenv("HEALTH_FEED"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	feed, err := health.NewDRAResourceHealthClient(connection).NodeWatchResources(ctx, &health.NodeWatchResourcesRequest{})
	if err != nil {
		return err
	}
	for {
		list, err := feed.Recv()
		if err != nil {
			return err
		}
		if err := out.Send(f.translated(list)); err != nil {
			return err
		}
	}
}

// The feed names a device by its PCI address with dashes, whatever the driver.
func (f feedHealth) translated(list *health.NodeWatchResourcesResponse) *health.NodeWatchResourcesResponse {
	told := &health.NodeWatchResourcesResponse{}
	for _, pair := range strings.Split(os.Getenv("HEALTH_DEVICES"), ",") {
		name, address, _ := strings.Cut(pair, "=")
		label := strings.NewReplacer(":", "-", ".", "-").Replace(address)
		for _, device := range list.Devices {
			if device.Device.DeviceName != label {
				continue
			}
			device.Device = &health.DeviceIdentifier{PoolName: os.Getenv("HEALTH_POOL"), DeviceName: name}
			told.Devices = append(told.Devices, device)
		}
	}
	return told
}
