{{/* Labels that every object carries. */}}
{{- define "cluster.labels" -}}
cluster.x-k8s.io/cluster-name: {{ .Release.Name }}
{{- end }}

{{/*
What every object but a pool carries: Helm neither deletes it when the release is uninstalled nor when it leaves the chart.
A Cluster is deleted by deleting the Cluster, so that Cluster API takes its parts down in order; templates that are no longer
used go with it. See README.md.
*/}}
{{- define "cluster.keep" -}}
helm.sh/resource-policy: keep
{{- end }}

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

{{/* What a pool's nodes do at their first start: spec of a KubeadmConfig. */}}
{{- define "cluster.poolBootstrap" -}}
joinConfiguration:
  nodeRegistration:
    criSocket: unix:///var/run/containerd/containerd.sock
{{- end }}
