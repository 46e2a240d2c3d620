{{/*
spec of a NodeadmConfig, for the first start of a node. EKS passes labels and taints only to nodes of its own images, so the
kubelet gets them here, too. Takes the pool.
*/}}
{{- define "eks.nodeadm" -}}
{{- $flags := list }}
{{- $labels := list }}
{{- range $key, $value := .labels }}
{{- $domain := regexFind "^[^/]*/" $key | trimSuffix "/" }}
{{- if and (regexMatch "(^|[.])(kubernetes|k8s)[.]io$" $domain) (not (has $domain (list "node.kubernetes.io" "kubelet.kubernetes.io"))) }}
{{- fail (printf "pools: label %s: a node may not give itself a label of %s" $key $domain) }}
{{- end }}
{{- $labels = append $labels (printf "%s=%s" $key $value) }}
{{- end }}
{{- with $labels }}
{{- $flags = append $flags (printf "--node-labels=%s" (join "," .)) }}
{{- end }}
{{- $taints := list }}
{{- range .taints }}
{{- $taints = append $taints (include "cluster.taint" .) }}
{{- end }}
{{- with $taints }}
{{- $flags = append $flags (printf "--register-with-taints=%s" (join "," .)) }}
{{- end }}
{{- with $flags }}
kubelet:
  flags: {{ . | toJson }}
{{- else -}}
{}
{{- end }}
{{- end }}

{{/* The Secret has a second kubeconfig that reads its token from a file. The token ends after 15 minutes, and the file gets a new one. */}}
{{- define "provider.kubeconfigKey" -}}
relative
{{- end }}

{{/* Resources of a pool's node, for the autoscaler: a node group does not tell them. Takes (dict "root" $ "pool" $pool). */}}
{{- define "provider.capacity" -}}
{{- with .pool.capacity }}
cpu: {{ .cpu | quote }}
memory: {{ .memory | quote }}
{{- end }}
{{- end }}
