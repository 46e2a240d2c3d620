{{- define "provider.apiVersion" -}}
infrastructure.cluster.x-k8s.io/v1beta1
{{- end }}

{{- define "provider.machineTemplate" -}}
VSphereMachineTemplate
{{- end }}

{{/*
spec of a machine. The clone is a full clone, because the disk of a linked clone has the size of the template's disk. The VSphereCluster
has vCenter's fingerprint. In the machine's spec, a renewed certificate would replace every node, and the old nodes would still look for
the old certificate.
*/}}
{{- define "provider.machineSpec" -}}
server: {{ .root.Values.server | quote }}
template: {{ .machine.template | default .root.Values.template | quote }}
cloneMode: fullClone
os: Linux
powerOffMode: trySoft
{{- with .root.Values.placement }}
{{- range $field, $value := dict "datacenter" .datacenter "datastore" .datastore "folder" .folder "resourcePool" .resourcePool "storagePolicyName" .storagePolicy }}
{{- with $value }}
{{ $field }}: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
numCPUs: {{ .machine.cpus | default 4 }}
memoryMiB: {{ mul 1024 (.machine.memoryGiB | default 16) }}
diskGiB: {{ .machine.diskGiB | default 80 }}
{{- with .root.Values.tags }}
tagIDs: {{ . | toJson }}
{{- end }}
{{- with .root.Values.vmxKeys }}
{{- $own := dict }}
{{- if hasKey . "fleetctl.fleet" }}
{{- $own = dict "fleetctl.cluster" $.root.Release.Name }}
{{- end }}
customVMXKeys:
  {{- range $key, $value := merge $own . }}
  {{ $key | quote }}: {{ $value | quote }}
  {{- end }}
{{- end }}
network:
  devices:
  - networkName: {{ required "network.name: the network of the machines is needed" .root.Values.network.name | quote }}
    {{- with .root.Values.network.addressPool }}
    dhcp4: false
    addressesFromPools:
    - apiGroup: {{ .apiGroup | quote }}
      kind: {{ .kind | quote }}
      name: {{ .name | quote }}
    {{- else }}
    dhcp4: true
    {{- end }}
    {{- with .root.Values.network.nameservers }}
    nameservers: {{ . | toJson }}
    {{- end }}
{{- end }}

{{- define "provider.kubeadm" -}}
{{- $controlPlane := eq .role "control-plane" }}
{{- $vip := and $controlPlane .root.Values.controlPlane.endpoint.image }}
nodeName: {{ `'{{ local_hostname }}'` }}
kubeletArgs:
  cloud-provider: external
controllerManagerArgs:
  cloud-provider: external
spec:
  preKubeadmCommands:
  - {{ `hostnamectl set-hostname "{{ ds.meta_data.hostname }}"` | quote }}
  - echo "::1         ipv6-localhost ipv6-loopback localhost6 localhost6.localdomain6" >/etc/hosts
  - {{ `echo "127.0.0.1   {{ ds.meta_data.hostname }} {{ local_hostname }} localhost localhost.localdomain localhost4 localhost4.localdomain4" >>/etc/hosts` | quote }}
  {{- if $vip }}
  - /etc/pre-kubeadm-commands/50-kube-vip-prepare.sh
  {{- end }}
  {{- if .root.Values.ssh.authorizedKeys }}
  users:
  - name: {{ .root.Values.ssh.user | quote }}
    sudo: ALL=(ALL) NOPASSWD:ALL
    sshAuthorizedKeys: {{ .root.Values.ssh.authorizedKeys | toJson }}
  {{- end }}
  {{- if $vip }}
  files:
  - path: /etc/kubernetes/manifests/kube-vip.yaml
    owner: root:root
    permissions: "0644"
    content: |
      {{- include "vsphere.kubeVIP" .root | nindent 6 }}
  - path: /etc/kube-vip.hosts
    owner: root:root
    permissions: "0644"
    content: 127.0.0.1 localhost kubernetes
  # While kubeadm init runs, only super-admin.conf may do what kube-vip does.
  - path: /etc/pre-kubeadm-commands/50-kube-vip-prepare.sh
    owner: root:root
    permissions: "0700"
    content: |
      #!/bin/bash
      set -e
      if [[ -f /run/kubeadm/kubeadm.yaml ]]; then
        sed -i 's#path: /etc/kubernetes/admin.conf#path: /etc/kubernetes/super-admin.conf#' /etc/kubernetes/manifests/kube-vip.yaml
      fi
  {{- end }}
{{- end }}

{{- define "provider.capacity" -}}
cpu: {{ .pool.cpus | default 4 | quote }}
memory: {{ .pool.memoryGiB | default 16 }}Gi
{{- end }}

{{/* The key of the kubeconfig in the Secret of the cluster. */}}
{{- define "provider.kubeconfigKey" -}}
value
{{- end }}
