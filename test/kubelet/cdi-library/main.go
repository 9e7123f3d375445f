// Reads directories of CDI specs with the library of container runtimes, and says what it would inject. Each line of the input is a JSON list of
// directories, the most important one last; the answer is a line, too.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

type node struct {
	HostPath string `json:"hostPath"`
	Type     string `json:"type"`
	Major    int64  `json:"major"`
	Minor    int64  `json:"minor"`
}

type answer struct {
	// Why each file that the library looks at is no spec; empty for a spec.
	Files map[string]string `json:"files"`
	// The nodes of each device that can be injected, without those that all devices of its spec share.
	Devices map[string][]node `json:"devices"`
	// Why a device cannot be injected on this machine.
	Refused map[string]string `json:"refused"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var dirs []string
		if err := json.Unmarshal(lines.Bytes(), &dirs); err != nil {
			panic(err)
		}
		if err := out.Encode(read(dirs)); err != nil {
			panic(err)
		}
	}
}

func read(dirs []string) answer {
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(dirs...))
	if err != nil {
		panic(err)
	}
	found := answer{Files: map[string]string{}, Devices: map[string][]node{}, Refused: map[string]string{}}
	for path, errs := range cache.GetErrors() {
		// A file with a conflict is a spec.
		if _, err := cdi.ReadSpec(path, 0); err != nil {
			found.Files[filepath.Clean(path)] = errs[0].Error()
		}
	}
	for _, vendor := range cache.ListVendors() {
		for _, spec := range cache.GetVendorSpecs(vendor) {
			found.Files[spec.GetPath()] = ""
		}
	}
	for _, name := range cache.ListDevices() {
		device := cache.GetDevice(name)
		container := &oci.Spec{}
		if err := device.ApplyEdits(container); err != nil {
			found.Refused[name] = err.Error()
			continue
		}
		nodes := []node{}
		if container.Linux != nil {
			for _, made := range container.Linux.Devices {
				nodes = append(nodes, node{hostPath(device, made.Path), made.Type, made.Major, made.Minor})
			}
		}
		found.Devices[name] = nodes
	}
	return found
}

// hostPath says where the library looked for a node: of two nodes with one path the last one is injected.
func hostPath(device *cdi.Device, path string) string {
	host := ""
	for _, one := range device.ContainerEdits.DeviceNodes {
		if one.Path == path {
			if host = one.HostPath; host == "" {
				host = path
			}
		}
	}
	return host
}
