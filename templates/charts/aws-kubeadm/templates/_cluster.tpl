{{/* Labels of every object. */}}
{{- define "cluster.labels" -}}
cluster.x-k8s.io/cluster-name: {{ .Release.Name | quote }}
{{- end }}

{{/*
Keep policy of every object except pools and health checks: Helm deletes the object neither when the release is uninstalled nor when the
object is no longer in the chart. To delete a cluster, delete its Cluster object: then Cluster API deletes all parts in order, also unused
objects, and leaves nothing in the cloud. See README.md.
*/}}
{{- define "cluster.keep" -}}
helm.sh/resource-policy: keep
{{- end }}

{{/* metadata of an object that is kept. Takes (list $ "name"). */}}
{{- define "cluster.metadata" -}}
name: {{ index . 1 | quote }}
labels:
  {{- include "cluster.labels" (index . 0) | nindent 2 }}
annotations:
  {{- include "cluster.keep" (index . 0) | nindent 2 }}
{{- end }}

{{/* metadata of the Cluster, with the user's labels. */}}
{{- define "cluster.ownMetadata" -}}
{{- if hasKey (.Values.labels | default dict) "cluster.x-k8s.io/cluster-name" }}
{{- fail "labels: cluster.x-k8s.io/cluster-name is taken: it is the name of the cluster" }}
{{- end -}}
name: {{ .Release.Name | quote }}
labels:
  {{- include "cluster.labels" . | nindent 2 }}
  {{- with .Values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  {{- include "cluster.keep" . | nindent 2 }}
{{- end }}

{{/*
Hash of a template's content, for the template's name. Takes the text of a YAML mapping. Formatting, comments and the order of fields do
not count, so that machines are replaced only if their content changes.
*/}}
{{- define "cluster.hash" -}}
{{ . | fromYaml | toJson | sha256sum | trunc 8 }}
{{- end }}

{{/* Fails for mistakes in pools that the schema cannot express. */}}
{{- define "cluster.checkPools" -}}
{{- $names := list }}
{{- range $i, $pool := .Values.pools }}
{{- if eq $pool.name "control-plane" }}
{{- fail (printf "pools[%d].name: control-plane is taken" $i) }}
{{- end }}
{{- if has $pool.name $names }}
{{- fail (printf "pools[%d].name: there are two pools called %s" $i $pool.name) }}
{{- end }}
{{- $names = append $names $pool.name }}
{{- if hasKey $pool "min" }}
{{- if gt (int $pool.min) (int $pool.max) }}
{{- fail (printf "pools[%d].min: %d is more than max, %d" $i (int $pool.min) (int $pool.max)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A taint as kubectl writes it. */}}
{{- define "cluster.taint" -}}
{{ .key }}{{ with .value }}={{ . }}{{ end }}:{{ .effect }}
{{- end }}
