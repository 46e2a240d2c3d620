{{/* Region or zone of the cluster. */}}
{{- define "gke.location" -}}
{{ .Values.location | default .Values.region }}
{{- end }}

{{/* Number of zones of a pool's nodes: GKE counts nodes for each zone. Takes (dict "root" $ "pool" $pool). */}}
{{- define "gke.zones" -}}
{{- if .pool.zones }}
{{- len .pool.zones }}
{{- else if eq (include "gke.location" .root) .root.Values.region }}
{{- 3 }}
{{- else }}
{{- 1 }}
{{- end }}
{{- end }}
