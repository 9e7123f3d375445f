// The part of a kubelet that deals with devices, in one process: its own device manager, topology manager, plugin watcher and
// PodResources services, in a directory of choice, without root, cgroups or a container runtime. The process stands for the
// kubelet: whoever wants a restart ends it by a signal and starts another in the same directory.
//
// Requests are JSON objects, one per line on standard input; each is answered by one line with its id and either "answer" or
// "error". Lines with "event" come by themselves. It ends when its input does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	features "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

var output sync.Mutex

func say(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		fail(err)
	}
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	var s settings
	flag.StringVar(&s.directory, "dir", "", "stands for /var/lib/kubelet")
	flag.IntVar(&s.numa, "numa", 2, "number of NUMA nodes")
	flag.StringVar(&s.policy, "topology-policy", "none", "topology manager policy")
	flag.StringVar(&s.scope, "topology-scope", "container", "topology manager scope")
	flag.BoolVar(&s.onlyV1alpha1, "only-v1alpha1", false, "offer no newer PodResources service")
	podsAfter := flag.Int("pods-after", 0, "milliseconds after which the pod sources deliver; below 0: at the command deliver")
	cpus := flag.String("cpus", "[]", "JSON: CPUs that containers can have for themselves")
	memory := flag.String("memory", "[]", "JSON: memory that containers can have for themselves")
	gates := flag.String("feature-gates", "", "as of the kubelet")
	klog.InitFlags(nil)
	flag.Parse()
	if s.directory == "" {
		fail(fmt.Errorf("-dir is needed"))
	}
	for _, part := range []struct {
		text string
		into any
	}{{*cpus, &s.cpus}, {*memory, &s.memory}} {
		if err := json.Unmarshal([]byte(part.text), part.into); err != nil {
			fail(err)
		}
	}
	if *gates != "" {
		if err := features.DefaultMutableFeatureGate.Set(*gates); err != nil {
			fail(err)
		}
	}
	k := begin(s)
	go deliverAfter(k, *podsAfter)
	serve(k)
}

func begin(s settings) *kubelet {
	for _, folder := range []string{"device-plugins", "pod-resources", "plugins_registry"} {
		if err := os.MkdirAll(filepath.Join(s.directory, folder), 0o750); err != nil {
			fail(err)
		}
	}
	pods, err := openPodStore(s.directory)
	if err != nil {
		fail(err)
	}
	k := &kubelet{settings: s, pods: pods}
	healthChanged := func(uids []string) { say(map[string]any{"event": "health", "pods": uids}) }
	if err := k.start(context.Background(), healthChanged); err != nil {
		fail(err)
	}
	say(map[string]any{"event": "ready", "pid": os.Getpid()})
	return k
}

func deliverAfter(k *kubelet, delayMs int) {
	if delayMs < 0 {
		return
	}
	time.Sleep(time.Duration(delayMs) * time.Millisecond)
	refused, err := k.deliverPods()
	if err != nil {
		fail(err)
	}
	say(map[string]any{"event": "delivered", "refused": refused})
}

// serve answers each request by itself, so that one that hangs holds up no other.
func serve(k *kubelet) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 16<<20)
	for input.Scan() {
		var r request
		if err := json.Unmarshal(input.Bytes(), &r); err != nil {
			fail(fmt.Errorf("not a request: %w", err))
		}
		go answer(k, r)
	}
}

func answer(k *kubelet, r request) {
	do, known := commands[r.Do]
	if !known {
		say(map[string]any{"id": r.ID, "error": fmt.Sprintf("no command %q", r.Do)})
		return
	}
	result, err := do(k, r)
	if err != nil {
		say(map[string]any{"id": r.ID, "error": err.Error()})
		return
	}
	say(map[string]any{"id": r.ID, "answer": result})
}
