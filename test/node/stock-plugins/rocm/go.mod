module github.com/ROCm/k8s-device-plugin/told

go 1.26.5

require (
	github.com/ROCm/k8s-device-plugin v0.0.0-20260811212246-ed7646843003
	k8s.io/kubelet v0.31.0
)

require (
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/glog v1.2.5 // indirect
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/grpc v1.79.3 // indirect
	google.golang.org/protobuf v1.36.10 // indirect
)
