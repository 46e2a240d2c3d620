{{/* Labels that every object carries. */}}
{{- define "cluster.labels" -}}
cluster.x-k8s.io/cluster-name: {{ .Release.Name }}
{{- end }}

{{/*
What every object but a pool carries: Helm neither deletes it when the release is uninstalled nor when it leaves the chart.
A Cluster is deleted by deleting the Cluster, so that Cluster API takes its parts down in order and no container stays behind;
templates that are no longer used go with it. See README.md.
*/}}
{{- define "cluster.keep" -}}
helm.sh/resource-policy: keep
{{- end }}

{{/* The machines: spec of a DevMachine. The same for the control plane and the pools. */}}
{{- define "cluster.machineSpec" -}}
backend:
  docker:
    {{- with .Values.node.image }}
    customImage: {{ . | quote }}
    {{- end }}
    {{- with .Values.node.extraMounts }}
    extraMounts:
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .Values.node.preLoadImages }}
    preLoadImages:
    {{- toYaml . | nindent 4 }}
    {{- end }}
    bootstrapTimeout: 10m
{{- end }}

{{/* Flags of the kubelet as a list, in a stable order. */}}
{{- define "cluster.kubeletExtraArgs" -}}
{{- range $name, $value := .Values.kubeletExtraArgs }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* nodeRegistration of the control plane nodes. CAPD adds what depends on the node image. */}}
{{- define "cluster.controlPlaneRegistration" -}}
kubeletExtraArgs: {{ include "cluster.kubeletExtraArgs" . | fromYamlArray | toJson }}
{{- if not (kindIs "invalid" .Values.controlPlane.taints) }}
taints: {{ .Values.controlPlane.taints | toJson }}
{{- end }}
{{- end }}

{{/* What a pool's nodes do at their first start: spec of a KubeadmConfig. Takes (dict "root" $ "pool" $pool). */}}
{{- define "cluster.poolBootstrap" -}}
joinConfiguration:
  nodeRegistration:
    kubeletExtraArgs: {{ include "cluster.kubeletExtraArgs" .root | fromYamlArray | toJson }}
    {{- with .pool.taints }}
    taints: {{ . | toJson }}
    {{- end }}
{{- end }}
