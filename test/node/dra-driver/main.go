// dra-driver is a small DRA driver for tests. It publishes devices, writes a CDI spec for each claim, and with -metadata also the
// metadata files of KEP-5304.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

type device struct{ name, address, node string }

type driver struct {
	name, nodeName, cdi string
	metadata            bool
	// A device that is attached to the node before a pod is bound. The driver takes its time to prepare it.
	attached bool
	devices  []device
}

const prepareFor = 10 * time.Second

func (d *driver) specFile(uid types.UID) string {
	return filepath.Join(d.cdi, d.name+"-"+string(uid)+".json")
}

func (d *driver) deviceOf(name string) device {
	for _, one := range d.devices {
		if one.name == name {
			return one
		}
	}
	return device{name: name}
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	if d.attached {
		time.Sleep(prepareFor)
	}
	for _, claim := range claims {
		results[claim.UID] = d.prepare(claim)
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) kubeletplugin.PrepareResult {
	result := kubeletplugin.PrepareResult{}
	var specs []any
	for _, allocated := range claim.Status.Allocation.Devices.Results {
		if allocated.Driver != d.name {
			continue
		}
		one := d.deviceOf(allocated.Device)
		name := string(claim.UID) + "-" + one.name
		edits := map[string]any{"env": []string{"CLAIM_DEVICE_" + strings.ToUpper(strings.ReplaceAll(one.name, "-", "_")) + "=1"}}
		if one.node != "" {
			// With numbers the runtime makes the node without looking for it on the host.
			edits["deviceNodes"] = []any{map[string]any{"path": one.node, "type": "c", "major": 1, "minor": 3}}
		}
		specs = append(specs, map[string]any{"name": name, "containerEdits": edits})
		prepared := kubeletplugin.Device{Requests: []string{allocated.Request}, PoolName: allocated.Pool,
			DeviceName: allocated.Device, CDIDeviceIDs: []string{d.name + "/claim=" + name}}
		if d.metadata {
			prepared.Metadata = &kubeletplugin.DeviceMetadata{Attributes: map[string]resourceapi.DeviceAttribute{
				"resource.kubernetes.io/pciBusID": {StringValue: &one.address}}}
		}
		result.Devices = append(result.Devices, prepared)
	}
	text, _ := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": d.name + "/claim", "devices": specs})
	result.Err = os.WriteFile(d.specFile(claim.UID), text, 0o644)
	fmt.Println("prepared", claim.Namespace+"/"+claim.Name, len(result.Devices), result.Err)
	return result
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		os.Remove(d.specFile(claim.UID))
		results[claim.UID] = nil
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Println("error", message, err)
}

func main() {
	d := &driver{}
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig")
	devices := flag.String("devices", "", "name=address=node,...: the devices; address and node may be empty")
	flag.StringVar(&d.name, "driver", "gizmo.example.com", "driver name")
	flag.StringVar(&d.nodeName, "node", "", "node name")
	flag.StringVar(&d.cdi, "cdi-dir", "/var/run/cdi", "where CDI specs go")
	flag.BoolVar(&d.metadata, "metadata", false, "write metadata files")
	flag.BoolVar(&d.attached, "attached", false, "a pod is bound when the condition `attached` of its device is true")
	flag.Parse()
	for _, text := range strings.Split(*devices, ",") {
		parts := strings.SplitN(text, "=", 3)
		d.devices = append(d.devices, device{parts[0], parts[1], parts[2]})
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	check(os.MkdirAll(d.cdi, 0o755))
	check(os.MkdirAll(filepath.Join(kubeletplugin.KubeletPluginsDir, d.name), 0o750))
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(d.name), kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(d.nodeName), kubeletplugin.EnableDeviceMetadata(d.metadata), kubeletplugin.CDIDirectory(d.cdi),
		kubeletplugin.MetadataVersions(schema.GroupVersion{Group: "metadata.resource.k8s.io", Version: "v1alpha1"}))
	check(err)
	var published []resourceapi.Device
	for _, one := range d.devices {
		device := resourceapi.Device{Name: one.name}
		if d.attached {
			device.BindsToNode = &d.attached
			device.BindingConditions = []string{"attached"}
			device.BindingFailureConditions = []string{"attach-failed"}
		}
		published = append(published, device)
	}
	check(helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		d.nodeName: {Slices: []resourceslice.Slice{{Devices: published}}}}}))
	fmt.Println("published", len(published))
	<-ctx.Done()
	helper.Stop()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
