{{/* The name of everything, and what it is preceded by. */}}
{{- define "idmint.name" -}}
{{- if contains "idmint" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-idmint" (.Release.Name | trunc 33 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "idmint.labels" -}}
{{ include "idmint.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "idmint.selector" -}}
app.kubernetes.io/name: idmint
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "idmint.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}{{ end }}
{{- end }}
{{- end }}

{{- define "idmint.isSecure" -}}
{{- if dig "tls" "cert_file" "" .Values.files }}true{{ end }}
{{- end }}

{{/*
Options by their names with dots, out of a map with a level for each dot: fills `out`. A leaf is a scalar, or a key of a Secret.
*/}}
{{- define "idmint.flatten" -}}
{{- range $key, $value := .map }}
{{- $name := append $.path $key }}
{{- if and (kindIs "map" $value) (not (hasKey $value "name")) }}
{{- include "idmint.flatten" (dict "map" $value "path" $name "out" $.out) }}
{{- else if not (kindIs "invalid" $value) }}
{{- $_ := set $.out (join "." $name) $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* Helm reads each number as a float, and prints large ones as 1e+06. */}}
{{- define "idmint.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* Environment variables of options: `config`, `secrets`, `files` and `more`, which are set by the chart itself. */}}
{{- define "idmint.env" -}}
{{- $plain := dict }}{{ $secrets := dict }}{{ $files := dict }}
{{- include "idmint.flatten" (dict "map" .config "path" list "out" $plain) }}
{{- include "idmint.flatten" (dict "map" .secrets "path" list "out" $secrets) }}
{{- include "idmint.flatten" (dict "map" .files "path" list "out" $files) }}
{{- range $key, $value := $plain }}
{{- if hasKey $secrets $key }}{{ fail (printf "%s is set in config and in secrets: set one of them" $key) }}{{ end }}
- name: {{ include "idmint.variable" $key }}
  value: {{ include "idmint.text" $value | quote }}
{{- end }}
{{- range $key, $secret := $secrets }}
- name: {{ include "idmint.variable" $key }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.name | quote }}
      key: {{ $secret.key | quote }}
{{- end }}
{{- $keys := list }}
{{- range $key, $secret := $files }}
{{- if hasPrefix "unguessable.keys." $key }}
{{- $keys = append $keys (printf "%s=/etc/idmint/%s" (trimPrefix "unguessable.keys." $key) $key) }}
{{- else }}
- name: {{ include "idmint.variable" $key }}
  value: /etc/idmint/{{ $key }}
{{- end }}
{{- end }}
{{- with $keys }}
- name: IDMINT_UNGUESSABLE_KEYS
  value: {{ join "," . }}
{{- end }}
{{- end }}

{{- define "idmint.variable" -}}
IDMINT_{{ . | replace "." "_" | upper }}
{{- end }}

{{/* What the store's own commands need: the options that begin with these words. */}}
{{- define "idmint.storeOptions" -}}
{{- pick . "store" "ticket" "allow_unsafe_store" | toJson }}
{{- end }}

{{/* The volume with the files of Secrets; nothing when there are none. */}}
{{- define "idmint.fileVolume" -}}
{{- $files := dict }}
{{- include "idmint.flatten" (dict "map" .files "path" list "out" $files) }}
{{- range $name, $secret := .extra }}{{ $_ := set $files (printf "extra/%s" $name) $secret }}{{ end }}
{{- with $files }}
- name: files
  projected:
    # The group of the pod may read them, and nobody else.
    defaultMode: 0440
    sources:
      {{- range $path, $secret := . }}
      - secret:
          name: {{ $secret.name | quote }}
          items:
            - key: {{ $secret.key | quote }}
              path: {{ $path | quote }}
      {{- end }}
{{- end }}
{{- end }}

{{- define "idmint.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65534
runAsGroup: 65534
fsGroup: 65534
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "idmint.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What is the same for all pods. Kubernetes would add variables for each Service, and those of idmint-admin look like options. */}}
{{- define "idmint.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "idmint.podSecurity" . | nindent 2 }}
{{- end }}

{{/* What cannot work, said before anything is changed. */}}
{{- define "idmint.check" -}}
{{- $store := dig "store" "url" "" .Values.config }}
{{- if and (not $store) (not (dig "store" "url" "" .Values.secrets)) }}
{{- fail "no store: set config.store.url, or secrets.store.url to a key of a Secret" }}
{{- end }}
{{- range $url := append (splitList "," (dig "store" "more_urls" "" .Values.config)) $store }}
{{- if contains "sqlite:" $url }}
{{- fail "config.store.url: SQLite is a file for servers on one host, and a pod's file is lost with the pod, so that ids would come twice. Use PostgreSQL or etcd" }}
{{- end }}
{{- end }}
{{- if and (not (include "idmint.isSecure" .)) (not (dig "insecure" false .Values.config)) }}
{{- fail "no TLS: set files.tls.cert_file and files.tls.key_file to keys of a Secret, or config.insecure to true to serve in plain text" }}
{{- end }}
{{- $names := list }}
{{- range .Values.zones }}{{ $names = append $names .name }}{{ end }}
{{- if ne (len $names) (len (uniq $names)) }}
{{- fail "zones: two of them have the same name" }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (lt (int .maxReplicas) (int .minReplicas)) }}
{{- fail "autoscaling.maxReplicas is below autoscaling.minReplicas" }}
{{- end }}
{{- if and .enabled (not .metric.name) (not (dig "requests" "cpu" "" $.Values.resources)) }}
{{- fail "autoscaling by CPU needs resources.requests.cpu" }}
{{- end }}
{{- if and .enabled .metric.name (not .metric.averageValue) }}
{{- fail "autoscaling.metric.name needs autoscaling.metric.averageValue" }}
{{- end }}
{{- end }}
{{- end }}
