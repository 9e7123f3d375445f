// The released node-problem-detector. Its own module pins the versions of all others, and Go's database of checksums their content.
module device-agent/node-problem-detector

go 1.24.7

require k8s.io/node-problem-detector v1.34.0
