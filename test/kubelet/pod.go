package main

import (
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memoryBlock, claim and container are the pod as the driving test writes it.
type memoryBlock struct {
	Type  string  `json:"type"`
	Bytes uint64  `json:"bytes"`
	Nodes []int64 `json:"nodes"`
}

type claimedDevice struct {
	Driver string  `json:"driver"`
	Pool   string  `json:"pool"`
	Device string  `json:"device"`
	Share  *string `json:"share,omitempty"`
}

type claim struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Devices   []claimedDevice `json:"devices"`
}

type container struct {
	Name string `json:"name"`
	// "app" (or empty), "init" or "sidecar".
	Kind   string           `json:"kind,omitempty"`
	Wants  map[string]int64 `json:"wants,omitempty"`
	CPUs   []int64          `json:"cpus,omitempty"`
	Memory []memoryBlock    `json:"memory,omitempty"`
	Claims []claim          `json:"claims,omitempty"`
}

type pod struct {
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"`
	UID        string      `json:"uid"`
	Containers []container `json:"containers"`
	// Set when the pod came to its end: Succeeded or Failed.
	Phase   core.PodPhase `json:"phase,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"`
	// None of its containers runs.
	Down bool `json:"down,omitempty"`
}

func (p *pod) key() string  { return p.Namespace + "/" + p.Name }
func (p *pod) isOver() bool { return p.Phase == core.PodSucceeded || p.Phase == core.PodFailed }
func (p *pod) find(name string) *container {
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// object gives the pod as Kubernetes has it. Extended resources: what is requested is also the limit.
func (p *pod) object() *core.Pod {
	object := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)},
		Status:     core.PodStatus{Phase: p.Phase, Reason: p.Reason, Message: p.Message},
	}
	always := core.ContainerRestartPolicyAlways
	for _, c := range p.Containers {
		amounts := core.ResourceList{}
		for name, count := range c.Wants {
			amounts[core.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
		}
		made := core.Container{Name: c.Name, Resources: core.ResourceRequirements{Limits: amounts, Requests: amounts}}
		switch c.Kind {
		case "sidecar":
			made.RestartPolicy = &always
			object.Spec.InitContainers = append(object.Spec.InitContainers, made)
		case "init":
			object.Spec.InitContainers = append(object.Spec.InitContainers, made)
		default:
			object.Spec.Containers = append(object.Spec.Containers, made)
		}
	}
	return object
}
