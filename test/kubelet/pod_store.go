package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

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

// end replaces the pod by one that has come to its end.
func (s *podStore) end(p *pod, phase core.PodPhase, reason, message string) error {
	return s.change(p, func(ended *pod) { ended.Phase, ended.Reason, ended.Message = phase, reason, message })
}

// takeDown ends the containers of a pod that goes on, as the reboot of a node does.
func (s *podStore) takeDown(p *pod) error {
	return s.change(p, func(down *pod) { down.Down = true })
}

// change puts a changed copy in the pod's place: others may be reading the old one.
func (s *podStore) change(p *pod, make func(*pod)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.all {
		if s.all[i].UID == p.UID {
			changed := *s.all[i]
			make(&changed)
			s.all[i] = &changed
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
