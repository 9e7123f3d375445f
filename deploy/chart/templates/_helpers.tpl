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

{{/* The configuration file: the value `config` with the switches of the families and of what needs rights. */}}
{{- define "device-agent.config" -}}
{{- $probes := dict -}}
{{- range $family, $settings := .Values.families -}}
{{- if not $settings.enabled -}}{{- $_ := set $probes $family (dict "enabled" false) -}}{{- end -}}
{{- end -}}
{{- if and .Values.nvme.smart.enabled .Values.families.nvme.enabled -}}{{- $_ := set $probes "nvme" (dict "smart" true) -}}{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- if $probes -}}{{- $config = mergeOverwrite (dict "probe" $probes) $config -}}{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* What the container may do: the least that works, what the values of the chart add, and the value `securityContext`. */}}
{{- define "device-agent.securityContext" -}}
{{- $context := dict "runAsUser" 0 "readOnlyRootFilesystem" true -}}
{{- if or .Values.kmsg.enabled .Values.nvme.smart.enabled (dig "privileged" false .Values.securityContext) -}}
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
