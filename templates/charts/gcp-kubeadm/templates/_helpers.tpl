{{- define "provider.apiVersion" -}}
infrastructure.cluster.x-k8s.io/v1beta1
{{- end }}

{{- define "provider.machineTemplate" -}}
GCPMachineTemplate
{{- end }}

{{/* A machine, without a public address. Google Cloud encrypts every disk. */}}
{{- define "provider.machineSpec" -}}
instanceType: {{ .machine.size | quote }}
image: {{ .machine.image | default .root.Values.image | quote }}
publicIP: false
rootDeviceSize: {{ .machine.diskGiB | default 80 }}
rootDeviceType: {{ .machine.diskType | default "pd-balanced" | quote }}
{{- with .root.Values.network.subnet }}
subnet: {{ .name | quote }}
{{- end }}
serviceAccounts:
  email: {{ .root.Values.nodeServiceAccount | default "default" | quote }}
  scopes: ["https://www.googleapis.com/auth/cloud-platform"]
{{- $shielded := ternary "Enabled" "Disabled" .root.Values.shieldedVM }}
shieldedInstanceConfig:
  secureBoot: {{ $shielded }}
  virtualizedTrustedPlatformModule: {{ $shielded }}
  integrityMonitoring: {{ $shielded }}
{{- if .machine.spot }}
provisioningModel: Spot
{{- end }}
{{- end }}

{{- define "provider.kubeadm" -}}
nodeName: {{ `'{{ ds.meta_data.local_hostname.split(".")[0] }}'` }}
kubeletArgs:
  cloud-provider: external
controllerManagerArgs:
  allocate-node-cidrs: "false"
  cloud-provider: external
{{- end }}

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
