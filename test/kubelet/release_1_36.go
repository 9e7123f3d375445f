//go:build k8s1.36

package main

import (
	cadvisor "github.com/google/cadvisor/info/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// What Kubernetes 1.36 calls otherwise than 1.37; release_1_37.go has the same for that one.

type numaNode = cadvisor.Node

func topologyManagerOf(_ klog.Logger, nodes []numaNode, policy, scope string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(nodes, policy, scope, nil)
}

func (k *kubelet) admitted(p *core.Pod) lifecycle.PodAdmitResult {
	return k.topology.Admit(&lifecycle.PodAdmitAttributes{Pod: p})
}

func amountsOf(manager *devicemanager.ManagerImpl) (core.ResourceList, core.ResourceList, []string) {
	return manager.GetCapacity()
}

func updateStatus(manager *devicemanager.ManagerImpl, p *core.Pod, state *core.PodStatus) {
	manager.UpdateAllocatedResourcesStatus(p, state)
}

func (d heldDevices) UpdateAllocatedDevices() { d.manager.UpdateAllocatedDevices() }

func (d heldDevices) GetAllocatableDevices() []*podresources.ContainerDevices {
	return toContainerDevices(d.manager.GetAllocatableDevices())
}

func (t toldResources) GetCPUs(uid, name string) []int64 { return t.cpusOf(uid, name) }

func (t toldResources) GetMemory(uid, name string) []*podresources.ContainerMemory {
	return t.memoryOf(uid, name)
}

func (t toldResources) GetAllocatableMemory() []*podresources.ContainerMemory {
	return blocks(t.memory)
}

func (t toldResources) GetDynamicResources(p *core.Pod, c *core.Container) []*podresources.DynamicResource {
	return t.claimsOf(p, c)
}
