// Prints what Intel's device plugin makes of the devices in its arguments after the socket, ten times a second, as one JSON object in a line.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/intel/intel-device-plugins-for-kubernetes/cmd/gpu_plugin/xpumdservice"
)

func main() {
	service := xpumdservice.NewXpumd(os.Args[1])
	go service.Run(context.Background())
	out := json.NewEncoder(os.Stdout)
	for ; ; time.Sleep(100 * time.Millisecond) {
		told := map[string]string{}
		for _, address := range os.Args[2:] {
			healthy, err := service.GetDeviceHealth(address)
			switch {
			case err != nil:
				told[address] = "no data"
			case bool(healthy):
				told[address] = "Healthy"
			default:
				told[address] = "Unhealthy"
			}
		}
		if out.Encode(told) != nil {
			return
		}
	}
}
