{{/* The name of what a release has one of. */}}
{{- define "agent-engine.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{/* The beginning of the other names, with a hyphen. */}}
{{- define "agent-engine.prefix" -}}
{{- if kindIs "string" .Values.namePrefix }}{{ .Values.namePrefix }}{{ else }}{{ include "agent-engine.fullname" . }}-{{ end }}
{{- end }}

{{/* The labels by which pods are selected. They must never change, or an upgrade is refused. */}}
{{- define "agent-engine.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/part-of: {{ .Release.Name }}
{{- end }}

{{- define "agent-engine.labels" -}}
{{ include "agent-engine.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The metadata of the object that a release has one of. */}}
{{- define "agent-engine.metadata" -}}
name: {{ include "agent-engine.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "agent-engine.labels" . | nindent 2 }}
{{- end }}

{{/* The metadata of another object: the context and the rest of its name. */}}
{{- define "agent-engine.named" -}}
{{- $context := first . -}}
name: {{ include "agent-engine.prefix" $context }}{{ last . }}
namespace: {{ $context.Release.Namespace }}
labels:
  {{- include "agent-engine.labels" $context | nindent 2 }}
{{- end }}

{{/* The claim of the folder that workers and executors share. */}}
{{- define "agent-engine.claim" -}}
{{- .Values.workspaces.existingClaim | default (printf "%sworkspaces" (include "agent-engine.prefix" .)) }}
{{- end }}

{{/* Environment variables that come from Secrets of their own. */}}
{{- define "agent-engine.urls" -}}
{{- range $variable, $secret := dict "MONGODB_URL" .Values.mongodb.urlSecret "REDIS_URL" .Values.redis.urlSecret }}
{{- if $secret.name }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.name }}
      key: {{ $secret.key | default $variable }}
{{- end }}
{{- end }}
{{- end }}

{{/* The data of the ConfigMap: what the chart's other values say, and the settings. */}}
{{- define "agent-engine.settings" -}}
{{- $own := dict "PORT" "8080" "OPS_PORT" "9090" "TRUST_PROXY" "1" "RATE_LIMIT_STORE" "redis" "DRAIN_SECS" .Values.drainSecs }}
{{- if .Values.ingress.enabled }}{{ $_ := set $own "ALLOWED_HOSTS" .Values.ingress.host }}{{ end }}
{{- if .Values.console }}{{ $_ := set $own "CONSOLE" "true" }}{{ end }}
{{- with .Values.workspaces }}
{{- if and .bucket .existingClaim }}{{ fail "workspaces.bucket and workspaces.existingClaim: set one of them" }}{{ end }}
{{- if .bucket }}{{ $_ := set $own "WORKSPACE_STORE" .bucket }}{{ end }}
{{- if .region }}{{ $_ := set $own "WORKSPACE_STORE_REGION" .region }}{{ end }}
{{- if .endpoint }}{{ $_ := set $own "WORKSPACE_STORE_ENDPOINT" .endpoint }}{{ end }}
{{- end }}
{{- $elsewhere := dict "PORT" "the chart sets it" "OPS_PORT" "the chart sets it" "DRAIN_SECS" "set drainSecs" "CONSOLE" "set console"
  "WORKSPACE_STORE" "set workspaces.bucket" "WORKSPACE_STORE_REGION" "set workspaces.region" "WORKSPACE_STORE_ENDPOINT" "set workspaces.endpoint"
  "WORKSPACE_DIR" "mount a claim with workspaces.existingClaim" "DATA_DIR" "the image sets it" }}
{{- $secrets := list }}
{{- range $name, $value := .Values.settings }}
{{- if hasKey $elsewhere $name }}{{ fail (printf "settings.%s: %s" $name (get $elsewhere $name)) }}{{ end }}
{{- if regexMatch "^(REDIS_URL|MONGODB_URL|MASTER_KEY.*|.*_(TOKEN|API_KEY|SECRET_KEY|HEADERS)|(FALLBACK_)?MODEL_OPTIONS)$" $name }}
{{- $secrets = append $secrets $name }}
{{- end }}
{{- end }}
{{- with $secrets }}{{ fail (printf "settings has secrets: put %s into the Secret %s" (join ", " .) $.Values.existingSecret) }}{{ end }}
{{- range $name, $value := merge (dict) .Values.settings $own }}
{{ $name }}: {{ (kindIs "float64" $value | ternary (int64 $value) $value) | toString | quote }}
{{- end }}
{{- end }}
