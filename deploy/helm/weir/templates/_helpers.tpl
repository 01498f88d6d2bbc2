{{- define "weir.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "weir.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* weir.yaml: what the chart has to know comes last. The operator listener leaves the pod only to be scraped. */}}
{{- define "weir.config" -}}
{{- $admin := ternary "0.0.0.0" "127.0.0.1" .Values.monitoring.enabled }}
{{- $server := dict "host" "0.0.0.0" "port" 8080 "admin_host" $admin "admin_port" 8081 "drain_ms" (mul .Values.drainSeconds 1000) }}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) (dict "server" $server)) }}
{{- end }}
