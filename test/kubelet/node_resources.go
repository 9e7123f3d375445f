package main

import (
	core "k8s.io/api/core/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// heldDevices lets PodResources ask the device manager.
type heldDevices struct{ manager *devicemanager.ManagerImpl }

func (d heldDevices) GetDevices(uid, name string) []*podresources.ContainerDevices {
	return toContainerDevices(d.manager.GetDevices(uid, name))
}

// toldResources gives CPUs, memory and claims as the test said: their managers need hardware and a runtime, and are not here.
type toldResources struct {
	pods   *podStore
	cpus   []int64
	memory []memoryBlock
}

func (t toldResources) cpusOf(uid, name string) []int64 {
	if c := t.pods.canned(uid, name); c != nil {
		return c.CPUs
	}
	return nil
}

func (t toldResources) GetAllocatableCPUs() []int64 { return t.cpus }

func (t toldResources) memoryOf(uid, name string) []*podresources.ContainerMemory {
	if c := t.pods.canned(uid, name); c != nil {
		return blocks(c.Memory)
	}
	return nil
}

func blocks(told []memoryBlock) []*podresources.ContainerMemory {
	var made []*podresources.ContainerMemory
	for _, block := range told {
		nodes := make([]*podresources.NUMANode, 0, len(block.Nodes))
		for _, id := range block.Nodes {
			nodes = append(nodes, &podresources.NUMANode{ID: id})
		}
		topology := &podresources.TopologyInfo{Nodes: nodes}
		made = append(made, &podresources.ContainerMemory{MemoryType: block.Type, Size: block.Bytes, Topology: topology})
	}
	return made
}

// The real manager collects the CDI names of a driver over all devices of a claim, so that each entry has those before it too.
func (t toldResources) claimsOf(p *core.Pod, c *core.Container) []*podresources.DynamicResource {
	told := t.pods.canned(string(p.UID), c.Name)
	if told == nil {
		return nil
	}
	var made []*podresources.DynamicResource
	for _, one := range told.Claims {
		names := map[string][]*podresources.CDIDevice{}
		entry := &podresources.DynamicResource{ClaimName: one.Name, ClaimNamespace: one.Namespace}
		for _, d := range one.Devices {
			names[d.Driver] = append(names[d.Driver], &podresources.CDIDevice{Name: d.Driver + "/device=" + d.Device})
			entry.ClaimResources = append(entry.ClaimResources, &podresources.ClaimResource{
				CdiDevices: names[d.Driver], DriverName: d.Driver, PoolName: d.Pool, DeviceName: d.Device, ShareId: d.Share,
			})
		}
		made = append(made, entry)
	}
	return made
}
