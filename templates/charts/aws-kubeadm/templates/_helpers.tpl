{{- define "provider.apiVersion" -}}
infrastructure.cluster.x-k8s.io/v1beta2
{{- end }}

{{- define "provider.machineTemplate" -}}
AWSMachineTemplate
{{- end }}

{{/*
A machine: no public address, no SSH key, an encrypted disk, and metadata only with a token (IMDSv2). The name of its template has a hash of
this text, so that every change of it, also of a comment, replaces machines.
*/}}
{{- define "provider.machineSpec" -}}
instanceType: {{ .machine.size | quote }}
iamInstanceProfile: {{ ternary .root.Values.controlPlane.profile .root.Values.nodeProfile (eq .role "control-plane") | quote }}
{{- with .machine.image }}
ami:
  id: {{ . | quote }}
{{- end }}
publicIP: false
# An empty name means no key. Without the field, the key is called "default".
sshKeyName: ""
rootVolume:
  size: {{ .machine.diskGiB | default 80 }}
  type: gp3
  encrypted: true
  {{- with .root.Values.diskEncryptionKey }}
  encryptionKey: {{ . | quote }}
  {{- end }}
instanceMetadataOptions:
  httpEndpoint: enabled
  httpTokens: required
  {{- if and (eq .role "control-plane") .root.Values.controlPlane.podsUseProfile }}
  # Pods are one hop further away, and get the node's credentials.
  httpPutResponseHopLimit: 2
  {{- else }}
  # Pods are one hop further away, so they do not get the node's credentials.
  httpPutResponseHopLimit: 1
  {{- end }}
  instanceMetadataTags: disabled
{{- if .machine.spot }}
spotMarketOptions: {}
{{- end }}
{{- end }}

{{- define "provider.kubeadm" -}}
nodeName: {{ `'{{ ds.meta_data.local_hostname }}'` }}
kubeletArgs:
  cloud-provider: external
controllerManagerArgs:
  cloud-provider: external
{{- end }}

{{/* Nothing: the provider writes the resources of the machines into the machine template. */}}
{{- define "provider.capacity" -}}
{{- end }}

{{/* Ports that network plug-ins use from node to node. */}}
{{- define "aws.cniIngressRules" -}}
{{- if eq .Values.network.cni "cilium" }}
- {description: VXLAN (Cilium), protocol: udp, fromPort: 8472, toPort: 8472}
- {description: health checks (Cilium), protocol: tcp, fromPort: 4240, toPort: 4240}
- {description: ping (Cilium), protocol: icmp, fromPort: -1, toPort: -1}
{{- else }}
- {description: BGP (Calico), protocol: tcp, fromPort: 179, toPort: 179}
- {description: IP-in-IP (Calico), protocol: "4", fromPort: -1, toPort: 65535}
- {description: VXLAN (Calico), protocol: udp, fromPort: 4789, toPort: 4789}
- {description: Typha (Calico), protocol: tcp, fromPort: 5473, toPort: 5473}
{{- end }}
{{- end }}

{{/* The key of the kubeconfig in the Secret of the cluster. */}}
{{- define "provider.kubeconfigKey" -}}
value
{{- end }}
