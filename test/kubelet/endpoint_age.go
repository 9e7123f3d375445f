package main

import (
	"fmt"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// stoppedEarlier moves the time at which the device manager saw a plugin go. How long it waits for the plugin to come back is a
// constant of minutes, and what it counts from is unexported.
func stoppedEarlier(manager *devicemanager.ManagerImpl, resource string, by time.Duration) error {
	state := reflect.ValueOf(manager).Elem()
	mu := reachable(state.FieldByName("mutex")).Addr().Interface().(*sync.Mutex)
	mu.Lock()
	defer mu.Unlock()
	info := state.FieldByName("endpoints").MapIndex(reflect.ValueOf(resource))
	if !info.IsValid() {
		return fmt.Errorf("nobody has registered %s", resource)
	}
	// An endpointInfo, in it an interface, in it a pointer to an endpointImpl.
	endpoint := info.FieldByName("e").Elem().Elem()
	stopMu := reachable(endpoint.FieldByName("mutex")).Addr().Interface().(*sync.Mutex)
	stopMu.Lock()
	defer stopMu.Unlock()
	at := reachable(endpoint.FieldByName("stopTime")).Addr().Interface().(*time.Time)
	if at.IsZero() {
		return fmt.Errorf("the plugin of %s is there", resource)
	}
	*at = at.Add(-by)
	return nil
}

// reachable gives a field that may be written, exported or not.
func reachable(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}
