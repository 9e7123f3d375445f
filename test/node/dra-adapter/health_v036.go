// For kubeletplugin up to 0.36, which serves the health stream of a driver that implements its server.
package main

import health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

type feedHealth struct {
	health.UnimplementedDRAResourceHealthServer
}

func (feedHealth) NodeWatchResources(_ *health.NodeWatchResourcesRequest, out health.DRAResourceHealth_NodeWatchResourcesServer) error {
	followFeed(out.Context(), func(devices []*health.DeviceHealth) error {
		return out.Send(&health.NodeWatchResourcesResponse{Devices: devices})
	})
	return out.Context().Err()
}
