{{/*
Shared templates of the charts with kubeadm. Each of these charts defines, in _helpers.tpl:
  provider.apiVersion       of its objects
  provider.machineTemplate  kind of its machine templates
  provider.machineSpec      spec of a machine; takes (dict "root" $ "machine" $values "role" "control-plane" or "node")
  provider.kubeadm          settings for kubeadm; takes (dict "root" $ "role" … "template" $name of the machine template) and
                            gives nodeName, kubeletArgs, controllerManagerArgs and spec, further fields of a KubeadmConfig's spec
*/}}

{{/* Flags as a list, in a stable order. Takes a map. */}}
{{- define "kubeadm.args" -}}
{{- range $name, $value := . }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "kubeadm.registration" -}}
name: {{ .provider.nodeName | quote }}
kubeletExtraArgs:
  {{- include "kubeadm.args" (merge (dict) (.root.Values.kubeletExtraArgs | default dict) .provider.kubeletArgs) | nindent 2 }}
{{- end }}

{{/* spec of the control plane's KubeadmConfig. Takes (dict "root" $ "template" $name). */}}
{{- define "kubeadm.controlPlane" -}}
{{- $provider := include "provider.kubeadm" (dict "root" .root "role" "control-plane" "template" .template) | fromYaml }}
{{- $quiet := dict "profiling" "false" }}
{{- $registration := include "kubeadm.registration" (dict "root" .root "provider" $provider) | fromYaml }}
{{- $apiServer := merge (dict) (.root.Values.controlPlane.apiServerExtraArgs | default dict) $quiet }}
{{- $controllers := merge (dict) $provider.controllerManagerArgs $quiet }}
{{- $spec := dict
  "clusterConfiguration" (dict
    "apiServer" (dict "extraArgs" (include "kubeadm.args" $apiServer | fromYamlArray))
    "controllerManager" (dict "extraArgs" (include "kubeadm.args" $controllers | fromYamlArray))
    "scheduler" (dict "extraArgs" (include "kubeadm.args" $quiet | fromYamlArray)))
  "initConfiguration" (dict "nodeRegistration" $registration)
  "joinConfiguration" (dict "nodeRegistration" $registration) }}
{{- toYaml (merge (dict) $spec ($provider.spec | default dict)) }}
{{- end }}

{{/* spec of a pool's KubeadmConfig. Takes (dict "root" $ "pool" $pool "template" $name). */}}
{{- define "kubeadm.pool" -}}
{{- $provider := include "provider.kubeadm" (dict "root" .root "role" "node" "template" .template) | fromYaml }}
{{- $registration := include "kubeadm.registration" (dict "root" .root "provider" $provider) | fromYaml }}
{{- with .pool.taints }}
{{- $registration = set $registration "taints" . }}
{{- end }}
{{- $spec := dict "joinConfiguration" (dict "nodeRegistration" $registration) }}
{{- toYaml (merge (dict) $spec ($provider.spec | default dict)) }}
{{- end }}
