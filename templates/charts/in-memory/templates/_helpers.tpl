{{/* The machines: spec of a DevMachine. The same for the control plane and the pools. */}}
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

{{/* What a pool's nodes do at their first start: spec of a KubeadmConfig. Takes (dict "root" $ "pool" $pool). */}}
{{- define "cluster.poolBootstrap" -}}
joinConfiguration:
  nodeRegistration:
    criSocket: unix:///var/run/containerd/containerd.sock
    {{- with .pool.taints }}
    taints: {{ . | toJson }}
    {{- end }}
{{- end }}

{{/* What a node has, which the provider does not know. */}}
{{- define "provider.capacity" -}}
{{- with .pool.capacity }}
cpu: {{ .cpu | quote }}
memory: {{ .memory | quote }}
{{- end }}
{{- end }}

{{/* The key of the Secret of the cluster's kubeconfig that has it. */}}
{{- define "provider.kubeconfigKey" -}}
value
{{- end }}
