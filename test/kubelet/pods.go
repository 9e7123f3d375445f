package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"sync"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
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

// podStore is what the kubelet's pod sources and the container runtime know: it outlives the process, as they do, in a file.
type podStore struct {
	path string

	mu sync.Mutex
	// In the order in which they came.
	all []*pod
	// Those that the sources have delivered to this process.
	delivered sets.Set[string]
	// All sources have delivered.
	complete bool
}

func openPodStore(directory string) (*podStore, error) {
	store := &podStore{path: filepath.Join(directory, "pods.json"), delivered: sets.New[string]()}
	text, err := os.ReadFile(store.path)
	if errors.Is(err, fs.ErrNotExist) {
		return store, nil
	}
	if err != nil {
		return nil, err
	}
	return store, json.Unmarshal(text, &store.all)
}

// save writes beside and renames: the process may be killed at any moment. The lock is held.
func (s *podStore) save() error {
	text, err := json.Marshal(s.all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

func (s *podStore) find(namespace, name string) *pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		if p.Namespace == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

func (s *podStore) add(p *pod) error {
	if s.find(p.Namespace, p.Name) != nil {
		return fmt.Errorf("there is a pod %s already", p.key())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p)
	s.delivered.Insert(p.UID)
	return s.save()
}

func (s *podStore) remove(namespace, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.all {
		if p.Namespace == namespace && p.Name == name {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			return s.save()
		}
	}
	return fmt.Errorf("no pod %s/%s", namespace, name)
}

// end replaces the pod by one that has come to its end: others may be reading the old one.
func (s *podStore) end(p *pod, phase core.PodPhase, reason, message string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.all {
		if s.all[i].UID == p.UID {
			ended := *s.all[i]
			ended.Phase, ended.Reason, ended.Message = phase, reason, message
			s.all[i] = &ended
			return s.save()
		}
	}
	return fmt.Errorf("no pod %s", p.key())
}

// deliver makes one pod known to this process; of one that was removed meanwhile it says false.
func (s *podStore) deliver(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		if p.UID == uid {
			s.delivered.Insert(uid)
			return true
		}
	}
	return false
}

func (s *podStore) setComplete(complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = complete
}

func (s *podStore) isComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}

// running gives the pods that have not come to their end.
func (s *podStore) running() []*pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []*pod
	for _, p := range s.all {
		if !p.isOver() {
			pods = append(pods, p)
		}
	}
	return pods
}

// containers is what the runtime tells a starting kubelet: the containers that run, and which pod each belongs to.
func (s *podStore) containers() (containermap.ContainerMap, sets.Set[string]) {
	known, up := containermap.NewContainerMap(), sets.New[string]()
	for _, p := range s.running() {
		for _, c := range p.Containers {
			if c.Kind == "init" {
				continue
			}
			id := p.UID + "_" + c.Name
			known.Add(p.UID, c.Name, id)
			up.Insert(id)
		}
	}
	return known, up
}

// canned gives what a test said about a container by its pod's UID; nil when there is none.
func (s *podStore) canned(uid, name string) *container {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		if p.UID == uid {
			return p.find(name)
		}
	}
	return nil
}

func (s *podStore) objects(wanted func(*pod) bool) []*core.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var objects []*core.Pod
	for _, p := range s.all {
		if s.delivered.Has(p.UID) && wanted(p) {
			objects = append(objects, p.object())
		}
	}
	return objects
}

// The kubelet's pod manager and its filter of active pods, for PodResources and the device manager.

func (s *podStore) GetPods() []*core.Pod {
	return s.objects(func(*pod) bool { return true })
}

func (s *podStore) GetActivePods() []*core.Pod {
	return s.objects(func(p *pod) bool { return !p.isOver() })
}

func (s *podStore) GetPodByName(namespace, name string) (*core.Pod, bool) {
	found := s.objects(func(p *pod) bool { return p.Namespace == namespace && p.Name == name })
	if len(found) == 0 {
		return nil, false
	}
	return found[0], true
}

func sorted(ids []string) []string {
	sort.Strings(ids)
	return ids
}
