{{/* Labels that every object carries. */}}
{{- define "cluster.labels" -}}
cluster.x-k8s.io/cluster-name: {{ .Release.Name | quote }}
{{- end }}

{{/*
What every object but pools and health checks carries: Helm neither deletes it when the release is uninstalled nor when it leaves
the chart. A Cluster is deleted by deleting the Cluster, so that Cluster API takes its parts down in order and nothing stays
behind in the cloud; what is no longer used goes with it. See README.md.
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

{{/* metadata of the Cluster, which carries the user's labels, too. */}}
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
Hash of what a template holds, of which its name is made. Takes the text of a YAML mapping: how that is written, its comments and the
order of its fields do not count, so that machines are replaced only where something of them changes.
*/}}
{{- define "cluster.hash" -}}
{{ . | fromYaml | toJson | sha256sum | trunc 8 }}
{{- end }}

{{/* Fails where what the schema cannot say about pools is wrong. */}}
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
