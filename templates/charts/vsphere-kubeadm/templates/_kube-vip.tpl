{{/* kube-vip's Pod on every control plane node. One of these Pods announces the address of the API server. */}}
{{- define "vsphere.kubeVIP" -}}
apiVersion: v1
kind: Pod
metadata:
  name: kube-vip
  namespace: kube-system
spec:
  hostNetwork: true
  containers:
  - name: kube-vip
    image: {{ .Values.controlPlane.endpoint.image | quote }}
    imagePullPolicy: IfNotPresent
    args: [manager]
    env:
    {{- range $name, $value := dict
      "vip_arp" "true"
      "port" (.Values.controlPlane.endpoint.port | toString)
      "vip_interface" .Values.controlPlane.endpoint.interface
      "vip_cidr" "32"
      "cp_enable" "true"
      "cp_namespace" "kube-system"
      "vip_ddns" "false"
      "svc_enable" "false"
      "vip_leaderelection" "true"
      "vip_leasename" "plndr-cp-lock"
      "vip_leaseduration" "15"
      "vip_renewdeadline" "10"
      "vip_retryperiod" "2"
      "address" .Values.controlPlane.endpoint.host }}
    - name: {{ $name }}
      value: {{ $value | quote }}
    {{- end }}
    securityContext:
      capabilities:
        add: [NET_ADMIN, NET_RAW]
    volumeMounts:
    - mountPath: /etc/kubernetes/admin.conf
      name: kubeconfig
    - mountPath: /etc/hosts
      name: etchosts
  volumes:
  - name: kubeconfig
    hostPath:
      path: /etc/kubernetes/admin.conf
  - name: etchosts
    hostPath:
      path: /etc/kube-vip.hosts
      type: File
{{- end }}
