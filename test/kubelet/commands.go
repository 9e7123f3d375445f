package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	listerv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// request is one line of input. Which of the fields count is up to the command.
type request struct {
	ID        int           `json:"id"`
	Do        string        `json:"do"`
	Pod       *pod          `json:"pod"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
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

// capacity is what the node's status would say of the resources of plugins.
func capacity(k *kubelet, _ request) (any, error) {
	all, usable, gone := k.devices.GetCapacity()
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
		k.devices.UpdateAllocatedResourcesStatus(object, state)
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

const floodClients = 4

// flood is another client of the socket that asks far more often than the kubelet's limit allows. A question for a pod that
// is not there costs the kubelet next to nothing and takes its token all the same.
func flood(k *kubelet, r request) (any, error) {
	target := "unix:" + k.pathOf("pod-resources", "kubelet.sock")
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	client := listerv1.NewPodResourcesListerClient(connection)
	end := time.Now().Add(time.Duration(r.ForMs) * time.Millisecond)
	var mu sync.Mutex
	var asked, rejected int
	var clients sync.WaitGroup
	for range floodClients {
		clients.Go(func() {
			for time.Now().Before(end) {
				_, err := client.Get(context.Background(), &listerv1.GetPodResourcesRequest{PodName: "none", PodNamespace: "none"})
				mu.Lock()
				asked++
				if status.Code(err) == codes.ResourceExhausted {
					rejected++
				}
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	clients.Wait()
	return map[string]int{"asked": asked, "rejected": rejected}, nil
}
