{{- define "device-agent.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "device-agent.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "device-agent.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "device-agent.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "device-agent.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "device-agent.selectorLabels" -}}
app.kubernetes.io/name: {{ include "device-agent.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "device-agent.labels" -}}
{{ include "device-agent.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "device-agent.image" -}}
{{- with .Values.image -}}
{{- $name := ternary .repository (printf "%s/%s" .registry .repository) (empty .registry) -}}
{{- if .digest -}}{{ printf "%s@%s" $name .digest }}{{- else -}}{{ printf "%s:%s" $name (.tag | default $.Chart.AppVersion) }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "device-agent.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "device-agent.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The configuration file: the value `config` with the switches of the families and of what needs rights, and the names of the Service, by which
clients may address an agent. */}}
{{- define "device-agent.config" -}}
{{- $probes := dict -}}
{{- range $family, $settings := .Values.families -}}
{{- if not $settings.enabled -}}{{- $_ := set $probes $family (dict "enabled" false) -}}{{- end -}}
{{- end -}}
{{- if and .Values.nvme.smart.enabled .Values.families.nvme.enabled -}}{{- $_ := set $probes "nvme" (dict "smart" true) -}}{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- if $probes -}}{{- $config = mergeOverwrite (dict "probe" $probes) $config -}}{{- end -}}
{{- if or .Values.service.enabled .Values.serviceMonitor.enabled -}}
{{- $service := printf "%s.%s" (include "device-agent.fullname" .) (include "device-agent.namespace" .) -}}
{{- $names := list $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service) -}}
{{- $web := get $config "web" | default dict -}}
{{- $_ := set $config "web" (set $web "allowed-hosts" (concat (get $web "allowed-hosts" | default list) $names)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* What the container may do: the least that works, what the values of the chart add, and the value `securityContext`. */}}
{{- define "device-agent.securityContext" -}}
{{- $context := dict "runAsUser" 0 "readOnlyRootFilesystem" true -}}
{{- if or .Values.nvme.smart.enabled (dig "privileged" false .Values.securityContext) -}}
{{- $_ := set $context "privileged" true -}}
{{- else -}}
{{- $capabilities := dict "drop" (list "ALL") -}}
{{- if .Values.processes.enabled -}}{{- $_ := set $capabilities "add" (list "SYS_PTRACE" "DAC_READ_SEARCH") -}}{{- end -}}
{{- $_ := set $context "allowPrivilegeEscalation" false -}}
{{- $_ := set $context "capabilities" $capabilities -}}
{{- $_ := set $context "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $context (omit .Values.securityContext "privileged")) -}}
{{- end -}}

{{/* A probe of the kubelet. It cannot show a client certificate, so it then only opens a connection. */}}
{{- define "device-agent.probe" -}}
{{- if .root.Values.webConfig.requiresClientCertificate }}
tcpSocket: { port: metrics }
{{- else }}
httpGet: { path: {{ .path }}, port: metrics{{ if .root.Values.webConfig.tls }}, scheme: HTTPS{{ end }} }
{{- end }}
{{- end -}}

{{/* What a monitor says of an endpoint. The agent's own labels would name the agent as the holder of each device. */}}
{{- define "device-agent.endpoint" -}}
{{- $monitor := .monitor -}}
port: metrics
{{- with .root.Values.config.web }}{{ with index . "telemetry-path" }}
path: {{ . | quote }}
{{- end }}{{ end }}
honorLabels: true
{{- if .root.Values.webConfig.tls }}
scheme: https
{{- end }}
{{- with $monitor.interval }}
interval: {{ . }}
{{- end }}
{{- with $monitor.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with $monitor.tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $monitor.basicAuth }}
basicAuth:
  {{- toYaml . | nindent 2 }}
{{- end }}
relabelings:
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: node
  # Not the address of the pod: each rollout would make all series anew.
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: instance
  - action: labeldrop
    regex: {{ .dropped }}
  {{- with $monitor.relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $monitor.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What a pod without a need for the host may do. */}}
{{- define "device-agent.restricted" -}}
runAsNonRoot: true
runAsUser: 65534
runAsGroup: 65534
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{/* The name of the publisher's objects. */}}
{{- define "device-agent.publisher" -}}
{{- printf "%s-publish" (include "device-agent.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{/* Where a client in the cluster reaches the agents. */}}
{{- define "device-agent.address" -}}
{{- printf "%s://%s.%s.svc:%v" (ternary "https" "http" .Values.webConfig.tls) (include "device-agent.fullname" .) (include "device-agent.namespace" .) .Values.port -}}
{{- end -}}

{{/* Refuses settings that another value of the chart overrides. */}}
{{- define "device-agent.check" -}}
{{- $owned := dict
  "path.sysfs" "the chart mounts the directory of the host and sets the path. Remove the key, or set the variable DEVICE_AGENT_PATH_SYSFS in extraEnv."
  "path.procfs" "the chart mounts the directory of the host and sets the path. Remove the key, or set the variable DEVICE_AGENT_PATH_PROCFS in extraEnv."
  "path.dev" "the chart mounts the directory of the host and sets the path. Set dev.enabled instead."
  "web.listen-address" "the probes of the kubelet and the monitors need the port, too. Set the value port instead."
  "web.config.file" "the probes of the kubelet and the monitors must know whether there is TLS. Set webConfig.secretName and webConfig.tls instead."
  "state.file" "the publisher and the commands need the directory, too. Set state.enabled and state.hostPath instead."
-}}
{{- if .Values.nvidia.driverRoot -}}{{- $_ := set $owned "probe.nvidia.nvml-library" "nvidia.driverRoot sets the path of the library. Remove one of the two." -}}{{- end -}}
{{- if .Values.kmsg.enabled -}}{{- $_ := set $owned "path.kmsg" "kmsg.enabled sets the path. Remove one of the two." -}}{{- end -}}
{{- range $key, $why := $owned -}}
{{- $at := $.Values.config -}}
{{- $isSet := true -}}
{{- range $name := splitList "." $key -}}
{{- if and (kindIs "map" $at) (hasKey $at $name) -}}{{- $at = get $at $name -}}{{- else -}}{{- $isSet = false -}}{{- $at = dict -}}{{- end -}}
{{- end -}}
{{- if $isSet -}}{{- fail (printf "config.%s cannot be set: %s" $key $why) -}}{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "DEVICE_AGENT_WEB_LISTEN_ADDRESS" -}}{{- fail "extraEnv cannot set DEVICE_AGENT_WEB_LISTEN_ADDRESS: the probes of the kubelet and the monitors need the port, too. Set the value port instead." -}}{{- end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- if hasPrefix "--web.listen-address" . -}}{{- fail "extraArgs cannot set --web.listen-address: the probes of the kubelet and the monitors need the port, too. Set the value port instead." -}}{{- end -}}
{{- end -}}
{{- if and .Values.hostNetwork (eq .Values.updateStrategy.type "RollingUpdate") (dig "rollingUpdate" "maxSurge" 0 .Values.updateStrategy) -}}
{{- fail "updateStrategy.rollingUpdate.maxSurge must be 0 with hostNetwork: two agents cannot listen on one port of a node. Set maxSurge 0 and maxUnavailable 1." -}}
{{- end -}}
{{- if and .Values.publish.enabled (not .Values.state.enabled) -}}
{{- fail "publish.enabled needs state.enabled: the publisher asks the agent by the socket in that directory." -}}
{{- end -}}
{{- end -}}

{{/* The items of a list, without repetition of a key. The API server would refuse them after other objects are live already. */}}
{{- define "device-agent.unique" -}}
{{- $seen := dict -}}
{{- range .items -}}
{{- $value := toString (get . $.key) -}}
{{- if hasKey $seen $value -}}{{- fail (printf "%s %s occurs twice: %s must not repeat one of the chart." $.key $value $.from) -}}{{- end -}}
{{- $_ := set $seen $value true -}}
{{- end -}}
{{- toYaml .items -}}
{{- end -}}

{{/* The variables of the agent. Those of `extraEnv` replace those of the same name, each in its place. */}}
{{- define "device-agent.env" -}}
{{- $extra := dict -}}
{{- range .Values.extraEnv -}}{{- $_ := set $extra .name . -}}{{- end -}}
{{- $all := list -}}
{{- $own := dict -}}
{{- range (include "device-agent.ownEnv" . | fromYamlArray) -}}
{{- $_ := set $own .name true -}}
{{- $all = append $all (get $extra .name | default .) -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if not (hasKey $own .name) -}}
{{- $_ := set $own .name true -}}
{{- $all = append $all (get $extra .name) -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{- define "device-agent.ownEnv" }}
- name: NODE_NAME
  valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
- name: DEVICE_AGENT_CONFIG_FILE
  value: /etc/device-agent/config.yaml
- name: DEVICE_AGENT_WEB_LISTEN_ADDRESS
  value: {{ printf ":%v" .Values.port | quote }}
- name: DEVICE_AGENT_PATH_SYSFS
  value: /host/sys
- name: DEVICE_AGENT_PATH_PROCFS
  value: /host/proc
{{- if or .Values.dev.enabled .Values.plugin.enabled }}
- name: DEVICE_AGENT_PATH_DEV
  value: /host/dev
{{- end }}
{{- if .Values.kmsg.enabled }}
- name: DEVICE_AGENT_PATH_KMSG
  value: /run/kernel-log/socket
{{- end }}
{{- if not .Values.state.enabled }}
- name: DEVICE_AGENT_STATE_FILE
  value: ""
{{- end }}
{{- if .Values.webConfig.secretName }}
- name: DEVICE_AGENT_WEB_CONFIG_FILE
  value: /etc/device-agent-web/web.yaml
{{- end }}
{{- if and .Values.families.nvidia.enabled .Values.nvidia.visibleDevices }}
- name: NVIDIA_VISIBLE_DEVICES
  value: all
- name: NVIDIA_DRIVER_CAPABILITIES
  value: utility
{{- end }}
{{- if .Values.nvidia.driverRoot }}
- name: DEVICE_AGENT_PROBE_NVIDIA_NVML_LIBRARY
  value: /usr/local/nvidia/lib64/libnvidia-ml.so.1
{{- end }}
{{- end -}}

{{- define "device-agent.volumeMounts" }}
- { name: config, mountPath: /etc/device-agent, readOnly: true }
- { name: pod-resources, mountPath: /var/lib/kubelet/pod-resources, readOnly: true }
{{- if (.Values.config.podsapi).enabled }}
- { name: pods-api, mountPath: /var/lib/kubelet/pods-api, readOnly: true }
{{- end }}
- { name: device-plugins, mountPath: /var/lib/kubelet/device-plugins, readOnly: {{ not .Values.plugin.enabled }} }
- { name: kubelet-plugins, mountPath: /var/lib/kubelet/plugins, readOnly: true }
- { name: cdi, mountPath: /var/run/cdi, readOnly: true }
- { name: cdi-static, mountPath: /etc/cdi, readOnly: true }
- { name: sys, mountPath: /host/sys, readOnly: true, mountPropagation: HostToContainer }
- { name: proc, mountPath: /host/proc, readOnly: true, mountPropagation: HostToContainer }
{{- if or .Values.dev.enabled .Values.plugin.enabled }}
- { name: host-dev, mountPath: /host/dev, readOnly: true }
{{- end }}
{{- if .Values.state.enabled }}
- { name: state, mountPath: /var/lib/device-agent }
{{- end }}
{{- if .Values.webConfig.secretName }}
- { name: web, mountPath: /etc/device-agent-web, readOnly: true }
{{- end }}
{{- if .Values.kmsg.enabled }}
- { name: kernel-log, mountPath: /run/kernel-log, readOnly: true }
- { name: crashes, mountPath: /host/var/lib/systemd/pstore, readOnly: true }
{{- end }}
{{- if .Values.nvidia.driverRoot }}
- { name: nvidia-driver, mountPath: /usr/local/nvidia, readOnly: true }
{{- end }}
{{- range .Values.hostPaths }}
- name: {{ .name }}
  mountPath: {{ .mountPath }}
  readOnly: {{ dig "readOnly" true . }}
  {{- with .mountPropagation }}
  mountPropagation: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "device-agent.volumes" }}
- name: config
  configMap: { name: {{ include "device-agent.fullname" . }} }
# The directory and not the socket: the kubelet makes a new socket at each start.
- name: pod-resources
  hostPath: { path: {{ .Values.kubelet.rootDir }}/pod-resources, type: Directory }
{{- if (.Values.config.podsapi).enabled }}
# A kubelet without the API has no such directory, and the agent runs there too.
- name: pods-api
  hostPath: { path: {{ .Values.kubelet.rootDir }}/pods-api, type: DirectoryOrCreate }
{{- end }}
- name: device-plugins
  hostPath: { path: {{ .Values.plugin.directory }}, type: DirectoryOrCreate }
# What DRA drivers write about the devices of claims (docs/dra.md).
- name: kubelet-plugins
  hostPath: { path: {{ .Values.kubelet.rootDir }}/plugins, type: DirectoryOrCreate }
- name: cdi
  hostPath: { path: /var/run/cdi, type: DirectoryOrCreate }
- name: cdi-static
  hostPath: { path: /etc/cdi, type: DirectoryOrCreate }
# The host's: counters and network devices follow the network namespace of the mount.
- name: sys
  hostPath: { path: /sys }
- name: proc
  hostPath: { path: /proc }
{{- if or .Values.dev.enabled .Values.plugin.enabled }}
# The complete directory: a driver that is loaded later makes directories of its own in it.
- name: host-dev
  hostPath: { path: /dev, type: Directory }
{{- end }}
{{- if .Values.state.enabled }}
- name: state
  hostPath: { path: {{ .Values.state.hostPath }}, type: DirectoryOrCreate }
{{- end }}
{{- with .Values.webConfig.secretName }}
- name: web
  secret: { secretName: {{ . }} }
{{- end }}
{{- if .Values.kmsg.enabled }}
- name: kmsg
  hostPath: { path: /dev/kmsg, type: CharDevice }
# The socket by which the agent asks the container kernel-log.
- name: kernel-log
  emptyDir: { medium: Memory, sizeLimit: 1Mi }
# Last messages of kernels that crashed, which systemd moves here from /sys/fs/pstore.
- name: crashes
  hostPath: { path: /var/lib/systemd/pstore, type: DirectoryOrCreate }
{{- end }}
{{- with .Values.nvidia.driverRoot }}
- name: nvidia-driver
  hostPath: { path: {{ . }}, type: Directory }
{{- end }}
{{- range .Values.hostPaths }}
- name: {{ .name }}
  hostPath:
    path: {{ .hostPath }}
    {{- with .type }}
    type: {{ . }}
    {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}
