{{/*
Annotations that the autoscaler reads from a pool: its limits, and the resources of a node for a pool without nodes. Takes
(dict "root" $ "pool" $pool). Each chart defines provider.capacity, with the same arguments: cpu and memory of a node, or nothing.
*/}}
{{- define "cluster.autoscaler" -}}
{{- $group := "cluster.x-k8s.io/cluster-api-autoscaler-node-group" }}
{{- $capacity := "capacity.cluster-autoscaler.kubernetes.io" -}}
{{ $group }}-min-size: {{ .pool.min | quote }}
{{ $group }}-max-size: {{ .pool.max | quote }}
{{- range $name, $value := include "provider.capacity" . | fromYaml }}
{{ $capacity }}/{{ $name }}: {{ $value | quote }}
{{- end }}
{{- if .pool.labels }}
{{- $labels := list }}
{{- range $key, $value := .pool.labels }}
{{- $labels = append $labels (printf "%s=%s" $key $value) }}
{{- end }}
{{ $capacity }}/labels: {{ join "," $labels | quote }}
{{- end }}
{{- if .pool.taints }}
{{- $taints := list }}
{{- range $taint := .pool.taints }}
{{- $taints = append $taints (include "cluster.taint" $taint) }}
{{- end }}
{{ $capacity }}/taints: {{ join "," $taints | quote }}
{{- end }}
{{- end }}
