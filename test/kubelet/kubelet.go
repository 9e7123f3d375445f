package main

import (
	"context"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	cri "k8s.io/cri-client/pkg/util"
	"k8s.io/klog/v2"
	listerv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	listerv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	limit "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

type settings struct {
	directory string
	numa      int
	policy    string
	scope     string
	// Only the old PodResources service is offered.
	onlyV1alpha1 bool
	cpus         []int64
	memory       []memoryBlock
}

// kubelet is the part of a kubelet that deals with devices; everything in it but the pod store is the kubelet's own code.
type kubelet struct {
	settings
	pods     *podStore
	devices  *devicemanager.ManagerImpl
	topology topologymanager.Manager
	lister   listerv1.PodResourcesListerServer
	ready    config.SourcesReady
	// Pods are admitted one by one: a plugin that hangs in Allocate holds up everybody.
	admission sync.Mutex
}

func (k *kubelet) pathOf(folder, name string) string { return filepath.Join(k.directory, folder, name) }

// start follows the kubelet's order: device manager, plugin watcher, PodResources; the pods come later, from their sources.
func (k *kubelet) start(ctx context.Context, healthChanged func([]string)) error {
	logger := klog.FromContext(ctx)
	nodes := make([]numaNode, k.numa)
	for id := range nodes {
		nodes[id] = numaNode{Id: id}
	}
	var err error
	if k.topology, err = topologyManagerOf(logger, nodes, k.policy, k.scope); err != nil {
		return err
	}
	if k.devices, err = deviceManagerAt(logger, k.pathOf("device-plugins", "kubelet.sock"), nodes, k.topology); err != nil {
		return err
	}
	sayLists(k.devices)
	k.topology.AddHintProvider(logger, k.devices)
	k.ready = config.NewSourcesReady(func(sets.Set[string]) bool { return k.pods.isComplete() })
	known, up := k.pods.containers()
	if err := k.devices.Start(logger, k.pods.GetActivePods, k.ready, known, up); err != nil {
		return err
	}
	watcher := pluginmanager.NewPluginManager(k.pathOf("plugins_registry", ""), &record.FakeRecorder{})
	watcher.AddHandler("DevicePlugin", k.devices.GetWatcherHandler())
	go watcher.Run(ctx, k.ready, ctx.Done())
	go func() {
		for update := range k.devices.Updates() {
			healthChanged(update.PodUIDs)
		}
	}()
	return k.servePodResources(ctx)
}

// servePodResources does what the kubelet's server does, whose own function ends the process with the listener.
func (k *kubelet) servePodResources(ctx context.Context) error {
	told := toldResources{pods: k.pods, cpus: k.cpus, memory: k.memory}
	providers := podresources.PodResourcesProviders{
		Pods: k.pods, Devices: heldDevices{k.devices}, Cpus: told, Memory: told, DynamicResources: told,
	}
	k.lister = podresources.NewV1PodResourcesServer(ctx, providers)
	server := grpc.NewServer(limit.WithRateLimiter(ctx, "podresources", podresources.DefaultQPS, podresources.DefaultBurstTokens))
	listerv1alpha1.RegisterPodResourcesListerServer(server, podresources.NewV1alpha1PodResourcesServer(providers))
	if !k.onlyV1alpha1 {
		listerv1.RegisterPodResourcesListerServer(server, k.lister)
	}
	listener, err := cri.CreateListener("unix://" + k.pathOf("pod-resources", "kubelet.sock"))
	if err != nil {
		return err
	}
	go server.Serve(listener)
	return nil
}

// refusal is why a pod was not admitted, in the kubelet's words.
type refusal struct {
	Pod     string `json:"pod"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// admit asks the topology manager, which has the device manager allocate. A refused pod has failed and stays known.
func (k *kubelet) admit(p *pod) (*refusal, error) {
	k.admission.Lock()
	defer k.admission.Unlock()
	result := k.admitted(p.object())
	if result.Admit {
		return nil, nil
	}
	return &refusal{p.key(), result.Reason, result.Message}, k.pods.end(p, core.PodFailed, result.Reason, result.Message)
}

// deliverPods is the moment at which the pod sources have spoken: each pod is admitted again, and only then all are ready.
func (k *kubelet) deliverPods() ([]refusal, error) {
	refused := []refusal{}
	for _, p := range k.pods.running() {
		if !k.pods.deliver(p.UID) {
			continue
		}
		why, err := k.admit(p)
		if err != nil {
			return nil, err
		}
		if why != nil {
			refused = append(refused, *why)
		}
	}
	k.pods.setComplete(true)
	return refused, nil
}
