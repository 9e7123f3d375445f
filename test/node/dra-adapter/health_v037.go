// For kubeletplugin from 0.37 on, which serves the health stream itself and asks the driver by a method.
package main

import (
	"context"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

type feedHealth struct{}

var statuses = map[health.HealthStatus]kubeletplugin.HealthStatus{
	health.HealthStatus_UNKNOWN:   kubeletplugin.HealthStatusUnknown,
	health.HealthStatus_HEALTHY:   kubeletplugin.HealthStatusHealthy,
	health.HealthStatus_UNHEALTHY: kubeletplugin.HealthStatusUnhealthy,
}

func (feedHealth) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	followFeed(ctx, func(devices []*health.DeviceHealth) error {
		report := kubeletplugin.DeviceHealthReport{}
		for _, device := range devices {
			report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
				PoolName:           device.Device.PoolName,
				DeviceName:         device.Device.DeviceName,
				Health:             statuses[device.Health],
				LastUpdated:        time.Unix(device.LastUpdatedTime, 0),
				HealthCheckTimeout: time.Duration(device.HealthCheckTimeoutSeconds) * time.Second,
				Message:            device.Message,
			})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case reports <- report:
			return nil
		}
	})
	return nil
}
