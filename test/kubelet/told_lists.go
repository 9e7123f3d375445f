package main

import (
	"reflect"
	"time"

	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// toldLists stands between the plugins and the device manager, and says each list once the device manager has taken it.
type toldLists struct{ plugin.ClientHandler }

func (t toldLists) PluginListAndWatchReceiver(logger klog.Logger, resource string, list *api.ListAndWatchResponse) {
	t.ClientHandler.PluginListAndWatchReceiver(logger, resource, list)
	health := map[string]string{}
	for _, device := range list.Devices {
		health[device.ID] = device.Health
	}
	say(map[string]any{"event": "list", "atMs": time.Now().UnixMilli(), "resource": resource, "devices": health})
}

// sayLists has every list said from now on. Who gets the lists is unexported.
func sayLists(manager *devicemanager.ManagerImpl) {
	server := reflect.ValueOf(manager).Elem().FieldByName("server").Elem().Elem()
	reachable(server.FieldByName("chandler")).Set(reflect.ValueOf(toldLists{manager}))
}
