//go:build !k8s1.36

package main

import (
	"context"

	cadvisor "github.com/google/cadvisor/lib/model"
	core "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// What Kubernetes 1.37 calls otherwise than 1.36; release_1_36.go has the same for that one.

type numaNode = cadvisor.Node

func topologyManagerOf(logger klog.Logger, nodes []numaNode, policy, scope string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(logger, nodes, policy, scope, nil)
}

// Without the operation, the device manager allocates nothing, and says nothing.
func (k *kubelet) admitted(p *core.Pod) lifecycle.PodAdmitResult {
	return k.topology.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: p, Operation: lifecycle.AddOperation})
}

func amountsOf(manager *devicemanager.ManagerImpl) (core.ResourceList, core.ResourceList, []string) {
	return manager.GetCapacity(klog.Background())
}

func updateStatus(manager *devicemanager.ManagerImpl, p *core.Pod, state *core.PodStatus) {
	manager.UpdateAllocatedResourcesStatus(klog.Background(), p, state)
}

func (d heldDevices) UpdateAllocatedDevices(logger klog.Logger) {
	d.manager.UpdateAllocatedDevices(logger)
}

func (d heldDevices) GetAllocatableDevices(logger klog.Logger) []*podresources.ContainerDevices {
	return toContainerDevices(d.manager.GetAllocatableDevices(logger))
}

func (t toldResources) GetCPUs(p *core.Pod, c *core.Container) []int64 {
	return t.cpusOf(string(p.UID), c.Name)
}

func (t toldResources) GetMemory(_ klog.Logger, p *core.Pod, c *core.Container) []*podresources.ContainerMemory {
	return t.memoryOf(string(p.UID), c.Name)
}

// No pod has CPUs or memory that its containers share.
func (toldResources) GetPodCPUs(string) []int64 { return nil }

func (toldResources) GetPodMemory(klog.Logger, string) []*podresources.ContainerMemory { return nil }

func (t toldResources) GetAllocatableMemory(klog.Logger) []*podresources.ContainerMemory {
	return blocks(t.memory)
}

func (t toldResources) GetDynamicResources(_ klog.Logger, p *core.Pod, c *core.Container) []*podresources.DynamicResource {
	return t.claimsOf(p, c)
}
