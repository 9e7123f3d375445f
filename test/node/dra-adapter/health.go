// Follows the health feed of the agent. With health_v036.go or health_v037.go, whichever fits the version of kubeletplugin, it is two more files of the
// driver's own package: the driver embeds feedHealth, and kubeletplugin then serves the kubelet's health stream. The driver looks its devices
// up by PCI address.
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

// followFeed reports each list of the feed under the names of the driver. It finds the socket of the agent in HEALTH_FEED, the driver's pool in
// HEALTH_POOL, and its devices in HEALTH_DEVICES, as "g-0=0000:1a:00.0,g-1=…".
func followFeed(ctx context.Context, report func([]*health.DeviceHealth) error) {
	for ctx.Err() == nil {
		if err := followOnce(ctx, report); err != nil {
			fmt.Println("health feed:", err)
		}
		// The agent may be away, for an update. The kubelet forgets the last list by itself.
		time.Sleep(200 * time.Millisecond)
	}
}

func followOnce(ctx context.Context, report func([]*health.DeviceHealth) error) error {
	connection, err := grpc.NewClient("unix:"+os.Getenv("HEALTH_FEED"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancel(ctx)
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
		if err := report(translated(list.Devices)); err != nil {
			return err
		}
	}
}

// The feed names a device by its PCI address with dashes, whatever the driver.
func translated(devices []*health.DeviceHealth) []*health.DeviceHealth {
	told := []*health.DeviceHealth{}
	for _, pair := range strings.Split(os.Getenv("HEALTH_DEVICES"), ",") {
		name, address, _ := strings.Cut(pair, "=")
		label := strings.NewReplacer(":", "-", ".", "-").Replace(address)
		for _, device := range devices {
			if device.Device.DeviceName != label {
				continue
			}
			// Two devices of a driver can be one device of the feed.
			told = append(told, &health.DeviceHealth{
				Device:                    &health.DeviceIdentifier{PoolName: os.Getenv("HEALTH_POOL"), DeviceName: name},
				Health:                    device.Health,
				LastUpdatedTime:           device.LastUpdatedTime,
				HealthCheckTimeoutSeconds: device.HealthCheckTimeoutSeconds,
				Message:                   device.Message,
			})
		}
	}
	return told
}
