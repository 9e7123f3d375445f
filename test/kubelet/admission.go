package main

import (
	"context"
	"errors"
	"sort"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

type admission struct {
	UID     string               `json:"uid"`
	Refused *refusal             `json:"refused,omitempty"`
	Given   map[string]givenData `json:"given,omitempty"`
}

// givenData is what one container gets, as the kubelet would pass it on to the runtime.
type givenData struct {
	Devices map[string][]string `json:"devices"`
	Options *runOptions         `json:"options,omitempty"`
	// Why the container could not be started.
	Error string `json:"error,omitempty"`
}

type givenMount struct {
	ContainerPath string `json:"containerPath"`
	HostPath      string `json:"hostPath"`
	ReadOnly      bool   `json:"readOnly"`
}

type givenNode struct {
	ContainerPath string `json:"containerPath"`
	HostPath      string `json:"hostPath"`
	Permissions   string `json:"permissions"`
}

type runOptions struct {
	Env         map[string]string `json:"env"`
	Annotations map[string]string `json:"annotations"`
	Mounts      []givenMount      `json:"mounts"`
	Nodes       []givenNode       `json:"nodes"`
	CDI         []string          `json:"cdi"`
}

func admitPod(k *kubelet, r request) (any, error) {
	if r.Pod == nil {
		return nil, errors.New("no pod to admit")
	}
	if r.Pod.UID == "" {
		r.Pod.UID = string(uuid.NewUUID())
	}
	if err := k.pods.add(r.Pod); err != nil {
		return nil, err
	}
	refused, err := k.admit(r.Pod)
	if err != nil || refused != nil {
		return admission{UID: r.Pod.UID, Refused: refused}, err
	}
	given := map[string]givenData{}
	object := r.Pod.object()
	for _, c := range append(append([]core.Container{}, object.Spec.InitContainers...), object.Spec.Containers...) {
		given[c.Name] = k.startContainer(object, &c)
	}
	return admission{UID: r.Pod.UID, Given: given}, nil
}

// startContainer asks for what the kubelet asks for before it has the runtime start a container.
func (k *kubelet) startContainer(p *core.Pod, c *core.Container) givenData {
	options, err := k.devices.GetDeviceRunContainerOptions(context.Background(), p, c)
	given := givenData{Devices: map[string][]string{}, Options: translated(options)}
	if err != nil {
		given.Error = err.Error()
	}
	for name, instances := range k.devices.GetDevices(string(p.UID), c.Name) {
		for id := range instances {
			given.Devices[name] = append(given.Devices[name], id)
		}
		sorted(given.Devices[name])
	}
	return given
}

func translated(options *devicemanager.DeviceRunContainerOptions) *runOptions {
	if options == nil {
		return nil
	}
	made := &runOptions{Env: map[string]string{}, Annotations: map[string]string{}, Mounts: []givenMount{}, Nodes: []givenNode{}, CDI: []string{}}
	for _, env := range options.Envs {
		made.Env[env.Name] = env.Value
	}
	for _, annotation := range options.Annotations {
		made.Annotations[annotation.Name] = annotation.Value
	}
	for _, mount := range options.Mounts {
		made.Mounts = append(made.Mounts, givenMount{mount.ContainerPath, mount.HostPath, mount.ReadOnly})
	}
	for _, device := range options.Devices {
		made.Nodes = append(made.Nodes, givenNode{device.PathInContainer, device.PathOnHost, device.Permissions})
	}
	for _, device := range options.CDIDevices {
		made.CDI = append(made.CDI, device.Name)
	}
	return made
}

func sorted(ids []string) []string {
	sort.Strings(ids)
	return ids
}
