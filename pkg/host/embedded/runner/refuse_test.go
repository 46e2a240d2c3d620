package runner

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
)

// single is a Deployment of one container, which nothing refuses.
func single(change func(pod *corev1.PodSpec, c *corev1.Container)) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/manager:v1"}}},
	}}}
	pod := &d.Spec.Template.Spec
	change(pod, &pod.Containers[0])
	return d
}

func volume(source corev1.VolumeSource) func(*corev1.PodSpec, *corev1.Container) {
	return func(pod *corev1.PodSpec, _ *corev1.Container) {
		pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
	}
}

// What cannot be run is refused by the name of the field, with the reason and the way out.
func TestRefusals(t *testing.T) {
	type (
		pod       = *corev1.PodSpec
		container = *corev1.Container
	)
	name := "gvisor"
	for want, change := range map[string]func(pod, container){
		"containers: there are 2 (manager, proxy), not one": func(p pod, _ container) { p.Containers = append(p.Containers, corev1.Container{Name: "proxy"}) },
		"initContainers: there is setup":                    func(p pod, _ container) { p.InitContainers = []corev1.Container{{Name: "setup"}} },
		"hostNetwork: ":                                     func(p pod, _ container) { p.HostNetwork = true },
		"hostPID: ":                                         func(p pod, _ container) { p.HostPID = true },
		"hostIPC: ":                                         func(p pod, _ container) { p.HostIPC = true },
		"runtimeClassName: there is no runtime gvisor":      func(p pod, _ container) { p.RuntimeClassName = &name },
		"nodeSelector: kubernetes.io/os is windows, this machine is ": func(p pod, _ container) { p.NodeSelector = map[string]string{"kubernetes.io/os": "windows"} },
		"nodeSelector: kubernetes.io/arch is mips, this machine is ":  func(p pod, _ container) { p.NodeSelector = map[string]string{"kubernetes.io/arch": "mips"} },
		"hostAliases: this machine resolves names, and cannot be given another address for a.example.com, b.example.com": func(p pod, _ container) {
			p.HostAliases = []corev1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"a.example.com", "b.example.com"}}}
		},
		"dnsConfig.nameservers: ": func(p pod, _ container) {
			p.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}, Searches: []string{"example.com"}}
		},
		"dnsConfig.searches: ": func(p pod, _ container) { p.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"example.com"}} },
		"readinessGates: there is no pod that could have the condition example.com/ready": func(p pod, _ container) {
			p.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
		},
		"resourceClaims[gpu]: ": func(p pod, _ container) { p.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} },

		"volumes[data].persistentVolumeClaim: ": volume(
			corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}),
		"volumes[data].csi: there is no driver secrets.example.com": volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets.example.com"}}),
		"volumes[data].ephemeral: ":                                 volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
		"volumes[data]: only secret, configMap, ":                   volume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}),
		"volumes[data].projected: a source is neither secret, ": volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}},
		}}),

		"containers[manager].volumeDevices: ": func(_ pod, c container) { c.VolumeDevices = []corev1.VolumeDevice{{Name: "disk"}} },
		"containers[manager].lifecycle.postStart: ": func(_ pod, c container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}}
		},
		"containers[manager].lifecycle.preStop: ": func(_ pod, c container) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
		},
		"containers[manager].ports[8080].hostPort: ": func(_ pod, c container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 80}}
		},
		"containers[manager].resources.limits[example.com/gpu]: ": func(_ pod, c container) {
			c.Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		},
		"containers[manager].resources.requests[hugepages-2Mi]: ": func(_ pod, c container) {
			c.Resources.Requests = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}
		},
		"containers[manager].livenessProbe.grpc: ":  func(_ pod, c container) { c.LivenessProbe = grpcProbe() },
		"containers[manager].readinessProbe.grpc: ": func(_ pod, c container) { c.ReadinessProbe = grpcProbe() },
		"containers[manager].startupProbe.grpc: ":   func(_ pod, c container) { c.StartupProbe = grpcProbe() },
	} {
		requireRefusal(t, check(single(change)), want)
	}
}

func grpcProbe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9440}}}
}

func requireRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if refused, ok := errors.AsType[*refusal](err); !ok {
		t.Errorf("%s: not refused: %v", want, err)
	} else if text := refused.Error(); !strings.HasPrefix(text, "spec.template.spec."+want) || !strings.HasSuffix(text, "; use --host kind") {
		t.Errorf("refused with %q, want %q and the way out", text, want)
	}
}

// What only restricts a container or raises its rights is not refused: managers that run well have it, the docker provider's for one.
func TestNotRefused(t *testing.T) {
	yes, zero := true, resource.MustParse("0")
	d := single(func(pod *corev1.PodSpec, c *corev1.Container) {
		c.SecurityContext = &corev1.SecurityContext{Privileged: &yes, Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}
		c.Resources.Limits = corev1.ResourceList{
			"cpu": resource.MustParse("1"), "ephemeral-storage": resource.MustParse("1Gi"),
			"example.com/gpu": zero,
		}
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
		c.Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
		pod.NodeSelector = map[string]string{"kubernetes.io/os": "linux", "example.com/pool": "management"}
		pod.DNSPolicy, pod.DNSConfig = corev1.DNSDefault, &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "ndots"}}}
		pod.ShareProcessNamespace = &yes
	})
	if err := check(d); err != nil {
		t.Error(err)
	}
}

// What comes to light only when the environment, the volumes or the command line are made.
func TestRefusalsWhileMaking(t *testing.T) {
	src, info := newSources(nil), podInfo{Namespace: "default"}
	nowhere, resources := &corev1.ObjectFieldSelector{FieldPath: "spec.mood"}, func(ref string) *corev1.ResourceFieldSelector {
		return &corev1.ResourceFieldSelector{Resource: ref}
	}
	for want, from := range map[string]*corev1.EnvVarSource{
		".fieldRef: there is no field spec.mood":                   {FieldRef: nowhere},
		".resourceFieldRef: there is no resource claims.cpu":       {ResourceFieldRef: resources("claims.cpu")},
		".resourceFieldRef: there is no resource cpu":              {ResourceFieldRef: resources("cpu")},
		".resourceFieldRef: there is no container proxy":           {ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "proxy", Resource: "limits.cpu"}},
		": only fieldRef, resourceFieldRef, secretKeyRef and conf": {},
	} {
		_, err := environment(t.Context(), src, info, &corev1.Container{Name: "manager", Env: []corev1.EnvVar{{Name: "MOOD", ValueFrom: from}}})
		requireRefusal(t, err, "containers[manager].env[MOOD].valueFrom"+want)
	}
	_, err := environment(t.Context(), src, info, &corev1.Container{Name: "manager", EnvFrom: []corev1.EnvFromSource{{}}})
	requireRefusal(t, err, "containers[manager].envFrom: only secretRef and configMapRef are known")

	items := []corev1.DownwardAPIVolumeFile{{Path: "mood", FieldRef: nowhere}}
	for field, source := range map[string]corev1.VolumeSource{
		"downwardAPI": {DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: items}},
		"projected.downwardAPI": {Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: items}}},
		}},
	} {
		v := volumes{dir: t.TempDir(), src: src, pod: info}
		_, err := v.make(t.Context(), &single(volume(source)).Spec.Template.Spec, nil)
		requireRefusal(t, err, "volumes[data]."+field+"[mood].fieldRef: there is no field spec.mood")
	}
}

// What no cluster could run says what to correct, and is no refusal: another image of the same name may be able to.
func TestCannotStart(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "script"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	img := images.Image{Ref: "registry.example.com/manager:v1", Root: root}
	command := func(words ...string) error {
		c := &corev1.Container{Name: "manager", Image: img.Ref, Command: words}
		_, err := (&planner{c: c}).command(context.Background(), img, nil)
		return err
	}
	for want, err := range map[string]error{
		"it is empty, and the image registry.example.com/manager:v1 has no command either; name the program there": command(),
		"image registry.example.com/manager:v1 has no program /manager: file does not exist; correct the command, or take the image that has " +
			"the program": command("/manager"),
	} {
		if refused := (*refusal)(nil); errors.As(err, &refused) || err == nil ||
			err.Error() != "spec.template.spec.containers[manager].command: "+want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	requireRefusal(t, command("/script"), "containers[manager].command: script is not a Linux program (a script needs its image around it)")

	if err := os.WriteFile(filepath.Join(root, "dynamic"), dynamicProgram(t, "/lib/ld-of-another-system.so.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	requireRefusal(t, command("/dynamic"),
		"containers[manager].image: its program is linked dynamically and this machine has no /lib/ld-of-another-system.so.1")

	v := volumes{dir: t.TempDir(), src: newSources(nil)}
	_, err := v.make(t.Context(), &single(func(pod *corev1.PodSpec, c *corev1.Container) {
		volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})(pod, c)
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data", SubPathExpr: "$(WHERE)"}}
	}).Spec.Template.Spec, map[string]string{"WHERE": "../other"})
	want := `spec.template.spec.containers[manager].volumeMounts[data].subPath: "../other" leads out of the volume; name a path inside it`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// dynamicProgram is a program's file as far as the name of its loader.
func dynamicProgram(t *testing.T, loader string) []byte {
	t.Helper()
	const headerSize, segmentSize = 64, 56
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Ehsize: headerSize, Phoff: headerSize, Phentsize: segmentSize, Phnum: 1,
	}
	copy(header.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}))
	segment := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headerSize + segmentSize, Filesz: uint64(len(loader) + 1)}
	var file bytes.Buffer
	for _, part := range []any{header, segment, append([]byte(loader), 0)} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}
