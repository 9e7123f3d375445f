package main

import (
	"k8s.io/klog/v2"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	_ "k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	_ "unsafe"
)

// The exported constructor knows one directory only, /var/lib/kubelet/device-plugins. This is the one it calls.
//
//go:linkname deviceManagerAt k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func deviceManagerAt(logger klog.Logger, socket string, nodes []numaNode, affinity topologymanager.Store) (*devicemanager.ManagerImpl, error)

// Turns what the device manager keeps into what PodResources answers.
//
//go:linkname toContainerDevices k8s.io/kubernetes/pkg/kubelet/cm.containerDevicesFromResourceDeviceInstances
func toContainerDevices(instances devicemanager.ResourceDeviceInstances) []*podresources.ContainerDevices
