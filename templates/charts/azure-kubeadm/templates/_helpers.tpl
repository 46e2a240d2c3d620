{{- define "provider.apiVersion" -}}
infrastructure.cluster.x-k8s.io/v1beta1
{{- end }}

{{- define "provider.machineTemplate" -}}
AzureMachineTemplate
{{- end }}

{{/* A machine, without a public address. The provider makes an SSH key that nobody has. */}}
{{- define "provider.machineSpec" -}}
vmSize: {{ .machine.size | quote }}
osDisk:
  osType: Linux
  diskSizeGB: {{ .machine.diskGiB | default 128 }}
{{- if eq .role "control-plane" }}
dataDisks:
- nameSuffix: etcddisk
  diskSizeGB: {{ .machine.etcdDiskGiB }}
  lun: 0
{{- end }}
{{- with .machine.image }}
image:
  id: {{ . | quote }}
{{- end }}
{{- with .root.Values.machineIdentity }}
identity: UserAssigned
userAssignedIdentities:
- providerID: {{ . | quote }}
{{- end }}
{{- if .root.Values.encryptionAtHost }}
securityProfile:
  encryptionAtHost: true
{{- end }}
{{- if .machine.spot }}
spotVMOptions:
  evictionPolicy: Delete
{{- end }}
{{- end }}

{{/* The provider writes the cloud provider's configuration into a Secret with the name of the machine template. */}}
{{- define "provider.kubeadm" -}}
{{- $controlPlane := eq .role "control-plane" }}
nodeName: {{ `'{{ ds.meta_data["local_hostname"] }}'` }}
kubeletArgs:
  cloud-provider: external
controllerManagerArgs:
  allocate-node-cidrs: "false"
  cloud-provider: external
  cluster-name: {{ .root.Release.Name | quote }}
spec:
  files:
  - path: /etc/kubernetes/azure.json
    owner: root:root
    permissions: "0600"
    contentFrom:
      secret:
        name: {{ .template }}-azure-json
        key: {{ ternary "control-plane-azure.json" "worker-node-azure.json" $controlPlane }}
  {{- if $controlPlane }}
  clusterConfiguration:
    etcd:
      local:
        dataDir: /var/lib/etcddisk/etcd
  diskSetup:
    partitions:
    - device: /dev/disk/azure/scsi1/lun0
      tableType: gpt
      layout: true
      overwrite: false
    filesystems:
    - device: /dev/disk/azure/scsi1/lun0
      filesystem: ext4
      label: etcd_disk
      extraOpts: ["-E", "lazy_itable_init=1,lazy_journal_init=1"]
    - device: ephemeral0.1
      filesystem: ext4
      label: ephemeral0
      replaceFS: ntfs
  mounts:
  - [LABEL=etcd_disk, /var/lib/etcddisk]
  {{- if not .root.Values.controlPlane.access.public }}
  {{- $host := printf "echo '127.0.0.1   apiserver.%s.capz.io apiserver' >> /etc/hosts" .root.Release.Name }}
  # An internal load balancer does not send a machine's traffic back to that machine.
  preKubeadmCommands:
  - {{ printf "if [ -f /run/kubeadm/kubeadm.yaml ]; then %s; fi" $host | quote }}
  postKubeadmCommands:
  - {{ printf "if [ -f /run/kubeadm/kubeadm-join-config.yaml ]; then %s; fi" $host | quote }}
  {{- end }}
  {{- end }}
{{- end }}

{{/* Nothing: the provider writes the resources of the machines into the machine template. */}}
{{- define "provider.capacity" -}}
{{- end }}

{{/* The key of the kubeconfig in the Secret of the cluster. */}}
{{- define "provider.kubeconfigKey" -}}
value
{{- end }}
