package main

import (
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
)

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
			if c.Kind == "init" || p.Down {
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
