{{/* spec of a DevMachine, for the control plane and the pools. */}}
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

{{/* The zones of the cluster: the zones of the control plane nodes and of the pools. */}}
{{- define "docker.failureDomains" -}}
{{- $names := .Values.controlPlane.zones }}
{{- range $names }}
- name: {{ . | quote }}
  controlPlane: true
{{- end }}
{{- range .Values.pools }}
{{- if and .zone (not (has .zone $names)) }}
{{- $names = append $names .zone }}
- name: {{ .zone | quote }}
  controlPlane: false
{{- end }}
{{- end }}
{{- end }}

{{/* Flags of the kubelet as a list, in a stable order. */}}
{{- define "cluster.kubeletExtraArgs" -}}
{{- range $name, $value := .Values.kubeletExtraArgs }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* nodeRegistration of the control plane nodes. CAPD adds the settings that depend on the node image. */}}
{{- define "cluster.controlPlaneRegistration" -}}
kubeletExtraArgs: {{ include "cluster.kubeletExtraArgs" . | fromYamlArray | toJson }}
{{- if not (kindIs "invalid" .Values.controlPlane.taints) }}
taints: {{ .Values.controlPlane.taints | toJson }}
{{- end }}
{{- end }}

{{/* spec of a pool's KubeadmConfig. Takes (dict "root" $ "pool" $pool). */}}
{{- define "cluster.poolBootstrap" -}}
joinConfiguration:
  nodeRegistration:
    kubeletExtraArgs: {{ include "cluster.kubeletExtraArgs" .root | fromYamlArray | toJson }}
    {{- with .pool.taints }}
    taints: {{ . | toJson }}
    {{- end }}
{{- end }}

{{/* Resources of a node, which the provider does not know. */}}
{{- define "provider.capacity" -}}
{{- with .pool.capacity }}
cpu: {{ .cpu | quote }}
memory: {{ .memory | quote }}
{{- end }}
{{- end }}

{{/* The key of the kubeconfig in the Secret of the cluster. */}}
{{- define "provider.kubeconfigKey" -}}
value
{{- end }}
