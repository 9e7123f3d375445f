package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	core "k8s.io/api/core/v1"
	listerv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// request is one line of input. Which of the fields count is up to the command.
type request struct {
	ID        int           `json:"id"`
	Do        string        `json:"do"`
	Pod       *pod          `json:"pod"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Container string        `json:"container"`
	Resource  string        `json:"resource"`
	Phase     core.PodPhase `json:"phase"`
	ForMs     int           `json:"forMs"`
}

type command func(*kubelet, request) (any, error)

var commands = map[string]command{
	"admit": admitPod,
	"remove": func(k *kubelet, r request) (any, error) {
		return struct{}{}, k.pods.remove(r.Namespace, r.Name)
	},
	"end": func(k *kubelet, r request) (any, error) {
		return struct{}{}, k.withPod(r, func(p *pod) error { return k.pods.end(p, r.Phase, "", "") })
	},
	"down": func(k *kubelet, r request) (any, error) {
		return struct{}{}, k.withPod(r, k.pods.takeDown)
	},
	"start":   startAgain,
	"age":     age,
	"deliver": func(k *kubelet, _ request) (any, error) { return k.deliverPods() },
	"list": func(k *kubelet, _ request) (any, error) {
		return told(k.lister.List(context.Background(), &listerv1.ListPodResourcesRequest{}))
	},
	"get": func(k *kubelet, r request) (any, error) {
		return told(k.lister.Get(context.Background(), &listerv1.GetPodResourcesRequest{PodNamespace: r.Namespace, PodName: r.Name}))
	},
	"allocatable": func(k *kubelet, _ request) (any, error) {
		return told(k.lister.GetAllocatableResources(context.Background(), &listerv1.AllocatableResourcesRequest{}))
	},
	"capacity":   capacity,
	"status":     podStatus,
	"checkpoint": checkpoint,
	"flood":      flood,
}

func (k *kubelet) withPod(r request, do func(*pod) error) error {
	p := k.pods.find(r.Namespace, r.Name)
	if p == nil {
		return fmt.Errorf("no pod %s/%s", r.Namespace, r.Name)
	}
	return do(p)
}

// told gives a gRPC message as JSON, its fields named as in the proto file.
func told[M proto.Message](message M, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	return json.RawMessage(text), err
}

// startAgain is the start of a container that was admitted before.
func startAgain(k *kubelet, r request) (any, error) {
	var given givenData
	err := k.withPod(r, func(p *pod) error {
		object := p.object()
		for _, c := range append(append([]core.Container{}, object.Spec.InitContainers...), object.Spec.Containers...) {
			if c.Name == r.Container {
				given = k.startContainer(object, &c)
				return nil
			}
		}
		return fmt.Errorf("no container %s in %s", r.Container, p.key())
	})
	return given, err
}

// age makes a plugin that is gone appear as if it had left that much earlier.
func age(k *kubelet, r request) (any, error) {
	return struct{}{}, stoppedEarlier(k.devices, r.Resource, time.Duration(r.ForMs)*time.Millisecond)
}

// capacity is what the node's status would say of the resources of plugins.
func capacity(k *kubelet, _ request) (any, error) {
	all, usable, gone := amountsOf(k.devices)
	amounts := func(list core.ResourceList) map[string]int64 {
		made := map[string]int64{}
		for name, amount := range list {
			made[string(name)] = amount.Value()
		}
		return made
	}
	return map[string]any{"capacity": amounts(all), "allocatable": amounts(usable), "gone": sorted(gone)}, nil
}

// podStatus gives allocatedResourcesStatus by container, resource and device.
func podStatus(k *kubelet, r request) (any, error) {
	made := map[string]map[string]map[string]string{}
	err := k.withPod(r, func(p *pod) error {
		object := p.object()
		state := &core.PodStatus{}
		for _, c := range object.Spec.Containers {
			state.ContainerStatuses = append(state.ContainerStatuses, core.ContainerStatus{Name: c.Name})
		}
		updateStatus(k.devices, object, state)
		for _, c := range state.ContainerStatuses {
			made[c.Name] = map[string]map[string]string{}
			for _, resource := range c.AllocatedResourcesStatus {
				health := map[string]string{}
				for _, device := range resource.Resources {
					health[string(device.ResourceID)] = string(device.Health)
				}
				made[c.Name][string(resource.Name)] = health
			}
		}
		return nil
	})
	return made, err
}

func checkpoint(k *kubelet, _ request) (any, error) {
	text, err := os.ReadFile(k.pathOf("device-plugins", "kubelet_internal_checkpoint"))
	return json.RawMessage(text), err
}
