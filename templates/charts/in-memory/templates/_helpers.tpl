{{/* spec of a DevMachine, for the control plane and the pools. */}}
{{- define "cluster.machineSpec" -}}
backend:
  inMemory:
    {{- range $part := list "vm" "node" "apiServer" "etcd" }}
    {{ $part }}:
      provisioning:
        startupDuration: {{ index $.Values.startup $part | quote }}
        startupJitter: "0.2"
    {{- end }}
{{- end }}

{{/* spec of a pool's KubeadmConfig. Takes (dict "root" $ "pool" $pool). */}}
{{- define "cluster.poolBootstrap" -}}
joinConfiguration:
  nodeRegistration:
    criSocket: unix:///var/run/containerd/containerd.sock
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
