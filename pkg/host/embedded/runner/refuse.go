package runner

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// refusal is the error for a Deployment's field that a process cannot fulfil.
type refusal struct{ field, reason string }

// Error names the field, the reason and the way out. It is shown in a condition, which has no separate hint.
func (r *refusal) Error() string {
	return fmt.Sprintf("%s: %s: the embedded host cannot run this; use --host kind", r.field, r.reason)
}

func refuse(field, format string, args ...any) error {
	return &refusal{"spec.template.spec." + field, fmt.Sprintf(format, args...)}
}

// containerField is the path of the container's field in errors.
func containerField(c *corev1.Container) string { return "containers[" + c.Name + "]" }

// check returns a refusal for a Deployment that one process cannot run as its spec says. It ignores fields that only restrict a container
// (security context, CPU and memory limits, read-only mounts), raise its rights, or say where it may run: the process has the rights of the
// user who started the host. docs/embedded.md lists these fields.
func check(d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	if err := checkPod(pod); err != nil {
		return err
	}
	for i := range pod.Volumes {
		if err := checkVolume(&pod.Volumes[i]); err != nil {
			return err
		}
	}
	return checkContainer(&pod.Containers[0])
}

func checkPod(pod *corev1.PodSpec) error {
	switch {
	case len(pod.Containers) != 1:
		var names []string
		for _, c := range pod.Containers {
			names = append(names, c.Name)
		}
		return refuse("containers", "there are %d (%s), not one", len(names), strings.Join(names, ", "))
	case len(pod.InitContainers) > 0:
		return refuse("initContainers", "there is %s", pod.InitContainers[0].Name)
	case pod.HostNetwork:
		return refuse("hostNetwork", "there is no node whose network it could use")
	case pod.HostPID:
		return refuse("hostPID", "there is no node whose processes it could see")
	case pod.HostIPC:
		return refuse("hostIPC", "there is no node whose IPC namespace it could use")
	case pod.RuntimeClassName != nil && *pod.RuntimeClassName != "":
		return refuse("runtimeClassName", "there is no runtime %s", *pod.RuntimeClassName)
	case len(pod.HostAliases) > 0:
		return refuse("hostAliases", "this machine resolves names, and cannot be given another address for %s",
			strings.Join(pod.HostAliases[0].Hostnames, ", "))
	case pod.DNSConfig != nil && len(pod.DNSConfig.Nameservers) > 0:
		return refuse("dnsConfig.nameservers", "the name servers of this machine are used")
	case pod.DNSConfig != nil && len(pod.DNSConfig.Searches) > 0:
		return refuse("dnsConfig.searches", "the search domains of this machine are used")
	case len(pod.ReadinessGates) > 0:
		return refuse("readinessGates", "there is no pod that could have the condition %s", pod.ReadinessGates[0].ConditionType)
	case len(pod.ResourceClaims) > 0:
		return refuse("resourceClaims["+pod.ResourceClaims[0].Name+"]", "there are no devices to claim")
	}
	for _, label := range []string{corev1.LabelOSStable, corev1.LabelArchStable} {
		have := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH}[label]
		if want, ok := pod.NodeSelector[label]; ok && want != have {
			return refuse("nodeSelector", "%s is %s, this machine is %s", label, want, have)
		}
	}
	return nil
}

func checkVolume(v *corev1.Volume) error {
	field := "volumes[" + v.Name + "]"
	switch {
	case v.Secret != nil, v.ConfigMap != nil, v.EmptyDir != nil, v.DownwardAPI != nil, v.HostPath != nil:
		return nil
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret == nil && s.ConfigMap == nil && s.DownwardAPI == nil && s.ServiceAccountToken == nil {
				return refuse(field+".projected", "a source is neither secret, configMap, downwardAPI nor serviceAccountToken")
			}
		}
		return nil
	case v.PersistentVolumeClaim != nil:
		return refuse(field+".persistentVolumeClaim", "there is no storage")
	case v.CSI != nil:
		return refuse(field+".csi", "there is no driver %s", v.CSI.Driver)
	case v.Ephemeral != nil:
		return refuse(field+".ephemeral", "there is no storage")
	}
	return refuse(field, "only secret, configMap, emptyDir, projected, downwardAPI and hostPath volumes are known")
}

func checkContainer(c *corev1.Container) error {
	field := containerField(c)
	switch {
	case len(c.VolumeDevices) > 0:
		return refuse(field+".volumeDevices", "there are no block devices")
	case c.Lifecycle != nil && c.Lifecycle.PostStart != nil:
		return refuse(field+".lifecycle.postStart", "hooks are not run")
	case c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep == nil:
		return refuse(field+".lifecycle.preStop", "hooks are not run")
	}
	for i := range c.Ports {
		if port := &c.Ports[i]; port.HostPort != 0 {
			return refuse(fmt.Sprintf("%s.ports[%d].hostPort", field, port.ContainerPort),
				"the host chooses a free port, which may differ from %d", port.HostPort)
		}
	}
	if err := checkResources(field, c.Resources); err != nil {
		return err
	}
	probes := probesOf(c)
	for _, name := range sortedKeys(probes) {
		if probes[name].GRPC != nil {
			return refuse(field+"."+name+".grpc", "only httpGet, tcpSocket and exec probes are known")
		}
	}
	return nil
}

// plainResources are resources that every process uses without asking for them.
var plainResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// checkResources refuses resources that a device plugin or the kernel would have to allocate, such as GPUs and huge pages.
func checkResources(field string, resources corev1.ResourceRequirements) error {
	lists := map[string]corev1.ResourceList{"limits": resources.Limits, "requests": resources.Requests}
	for _, kind := range sortedKeys(lists) {
		for _, name := range slices.Sorted(maps.Keys(lists[kind])) {
			quantity := lists[kind][name]
			if !quantity.IsZero() && !slices.Contains(plainResources, name) {
				return refuse(fmt.Sprintf("%s.resources.%s[%s]", field, kind, name), "nothing on this host allocates it")
			}
		}
	}
	return nil
}

// probesOf are the container's probes by field name.
func probesOf(c *corev1.Container) map[string]*corev1.Probe {
	probes := map[string]*corev1.Probe{}
	for name, probe := range map[string]*corev1.Probe{
		"startupProbe": c.StartupProbe, "readinessProbe": c.ReadinessProbe, "livenessProbe": c.LivenessProbe,
	} {
		if probe != nil {
			probes[name] = probe
		}
	}
	return probes
}
