package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// runs has the versions of Kubernetes that an object of Cluster API declares.
type runs struct {
	// version of the object, in the field with the path field; "" if it has none.
	version, field string
	// cluster is the Cluster of these machines; "" for a Cluster, and for a control plane.
	cluster string
	// control is the reference of a Cluster to its control plane.
	control reference
	// also are the versions in kubeadm's configuration, which must be the same.
	also []stated
	// gone are the settings that some version of Kubernetes has removed.
	gone []removedSetting
}

type stated struct{ version, field string }

// removedSetting is a setting that Kubernetes has removed. A newer program does not start with it.
type removedSetting struct {
	what, field string
	minor       uint64
}

// removedFlags are removed settings of Kubernetes' programs, with the minor release of 1 that removed them. value is the removed value; ""
// means any.
var removedFlags = []struct {
	flag, value string
	minor       uint64
}{
	{"cloud-provider", "openstack", 26},
	{"cloud-provider", "aws", 27},
	{"cloud-provider", "azure", 31},
	{"cloud-provider", "gce", 31},
	{"cloud-provider", "vsphere", 31},
	{"network-plugin", "", 24},
	{"cni-bin-dir", "", 24},
	{"cni-conf-dir", "", 24},
	{"dynamic-config-dir", "", 24},
	{"insecure-port", "", 24},
	{"container-runtime", "", 27},
	{"master-service-namespace", "", 27},
	{"pod-eviction-timeout", "", 27},
	{"enable-taint-manager", "", 27},
	{"enable-admission-plugins", "PodSecurityPolicy", 25},
}

// settingsOf are the paths of flags of Kubernetes' programs in kubeadm's configuration. The flags are fields, or a list of names and
// values.
var settingsOf = []string{
	"clusterConfiguration.apiServer.extraArgs", "clusterConfiguration.controllerManager.extraArgs", "clusterConfiguration.scheduler.extraArgs",
	"initConfiguration.nodeRegistration.kubeletExtraArgs", "joinConfiguration.nodeRegistration.kubeletExtraArgs",
}

// runsOf reads the versions of an object. It returns nil if the object has none.
func runsOf(o *object, content map[string]any) *runs {
	group := groupOf(o)
	if !strings.HasSuffix(group, clusterGroup) {
		return nil
	}
	f := mapping.Fields(content)
	out := &runs{}
	switch {
	case group == clusterGroup && o.Kind == "Cluster":
		out.say(f, "spec.topology.version")
		for _, ref := range o.refs {
			if ref.role == controlPlane {
				out.control = ref
			}
		}
	case group == clusterGroup && (o.Kind == "MachineDeployment" || o.Kind == "MachineSet" || o.Kind == "MachinePool"):
		out.say(f, "spec.template.spec.version")
		out.cluster = f.Text("spec", "clusterName")
	case group == clusterGroup && o.Kind == "Machine":
		if _, control := f.In("metadata", "labels")[clusterGroup+"/control-plane"]; control {
			return nil
		}
		out.say(f, "spec.version")
		out.cluster = f.Text("spec", "clusterName")
	case strings.HasSuffix(o.Kind, "ControlPlane"):
		out.say(f, "spec.version", "spec.controlPlaneVersion")
		out.kubeadm(f, "spec.kubeadmConfigSpec")
	case o.Kind == "KubeadmConfigTemplate":
		out.kubeadm(f, "spec.template.spec")
	default:
		return nil
	}
	return out
}

// says tells whether the object has a version, a setting or a reference that can be compared.
func (r *runs) says() bool {
	return r != nil && (r.version != "" || r.cluster != "" || r.control.name != "" || len(r.also)+len(r.gone) > 0)
}

// say sets the version from the first of the fields at paths that has a version without variables.
func (r *runs) say(f mapping.Fields, paths ...string) {
	for _, path := range paths {
		if text := f.Text(strings.Split(path, ".")...); text != "" && !strings.Contains(text, "${") {
			r.version, r.field = text, path
			return
		}
	}
}

// kubeadm reads kubeadm's configuration at a path.
func (r *runs) kubeadm(f mapping.Fields, at string) {
	path := strings.Split(at, ".")
	spec := f.In(path...)
	if spec == nil {
		return
	}
	if text := spec.Text("clusterConfiguration", "kubernetesVersion"); text != "" && !strings.Contains(text, "${") {
		r.also = append(r.also, stated{text, at + ".clusterConfiguration.kubernetesVersion"})
	}
	for _, settings := range settingsOf {
		steps := strings.Split(settings, ".")
		parent := spec.In(steps[:len(steps)-1]...)
		switch values := parent[steps[len(steps)-1]].(type) {
		case map[string]any:
			for name, value := range values {
				text, _ := value.(string)
				r.flag(name, text, at+"."+settings+"."+name)
			}
		case []any:
			for i, each := range values {
				inner, _ := each.(map[string]any)
				r.flag(mapping.Fields(inner).Text("name"), mapping.Fields(inner).Text("value"), fmt.Sprintf("%s.%s[%d].name", at, settings, i))
			}
		}
	}
}

func (r *runs) flag(name, value, field string) {
	for _, f := range removedFlags {
		if f.flag != name || f.value != "" && !slices.Contains(strings.Split(value, ","), f.value) {
			continue
		}
		what := "--" + f.flag
		if f.value != "" {
			what += "=" + f.value
		}
		r.gone = append(r.gone, removedSetting{what, field, f.minor})
	}
}

// skew has the versions of all clusters.
type skew struct {
	// planes are the control planes by their clusters, with the object that has the version.
	planes map[known]plane
}

type plane struct {
	version semver.Version
	text    string
	object  *object
}

// checkSkew reports versions of Kubernetes that do not fit together: versions of workers and of their control plane, versions of kubeadm's
// configuration, and settings that no longer exist. A control plane that is some releases newer than its workers is accepted, as during an
// upgrade.
func checkSkew(all []*object) diag.Findings {
	s := &skew{planes: map[known]plane{}}
	own := referable(all, func(o *object) bool { return o.runs != nil })
	for _, o := range all {
		if o.runs == nil || o.content != nil || o.Kind != "Cluster" {
			continue
		}
		for _, p := range o.places() {
			at := known{place: p, namespace: o.Namespace, name: o.Name}
			said := own[o.runs.control.in(p)]
			if said == nil || o.runs.version != "" {
				said = o
			}
			if v, err := semver.ParseTolerant(said.runs.version); err == nil {
				s.planes[at] = plane{v, said.runs.version, said}
			}
		}
	}
	var out diag.Findings
	for _, o := range all {
		if o.runs != nil && o.content == nil {
			out = append(out, s.check(o, own)...)
		}
	}
	return out
}

// check reports faults of the versions in one object.
func (s *skew) check(o *object, own map[known]*object) diag.Findings {
	var out diag.Findings
	v, err := semver.ParseTolerant(o.runs.version)
	group := groupOf(o)
	if o.runs.version != "" && (group == clusterGroup || o.Kind == "KubeadmControlPlane") {
		if _, strict := semver.Parse(strings.TrimPrefix(o.runs.version, "v")); strict != nil {
			out = append(out, o.at(o.runs.field, RuleValue, fmt.Sprintf("%.80q is no version of Kubernetes", o.runs.version),
				"write all three numbers, as in v1.36.3"))
		}
	}
	if o.runs.version != "" && err == nil {
		for _, also := range o.runs.also {
			if other, err := semver.ParseTolerant(also.version); err == nil && !other.Equals(v) {
				out = append(out, o.at(also.field, RuleSkew, fmt.Sprintf("kubeadm is told %.40s, and the control plane is %.40s",
					also.version, o.runs.version),
					"leave it out: Cluster API fills it in"))
			}
		}
	}
	for _, gone := range o.runs.gone {
		if err == nil && o.runs.version != "" && v.Major == 1 && v.Minor >= gone.minor {
			out = append(out, o.at(gone.field, RuleSkew, fmt.Sprintf("%s is gone since v1.%d, and the cluster is %.40s", gone.what, gone.minor,
				o.runs.version), "remove it"))
		}
	}
	if o.runs.cluster == "" {
		return out
	}
	for _, p := range o.places() {
		of, ok := s.planes[known{place: p, namespace: o.Namespace, name: o.runs.cluster}]
		if !ok {
			continue
		}
		if o.runs.version != "" && err == nil {
			out = append(out, o.beside(v, of)...)
		}
		out = append(out, s.bootstrap(p, o, own, of, v, err == nil && o.runs.version != "")...)
	}
	return out
}

// oldest is how many minor releases a kubelet may be older than the API server.
const oldest, oldestBefore28 = 3, 2

// beside compares workers with their control plane.
func (o *object) beside(v semver.Version, of plane) diag.Findings {
	where := fmt.Sprintf("%s %.80s is %.40s", of.object.Kind, of.object.Name, of.text)
	allowed := uint64(oldest)
	if of.version.Minor < 28 {
		allowed = oldestBefore28
	}
	switch {
	case v.Major > of.version.Major || v.Major == of.version.Major && v.Minor > of.version.Minor:
		return diag.Findings{o.at(o.runs.field, RuleSkew, fmt.Sprintf("%.40s is newer than the control plane: %s", o.runs.version, where),
			"upgrade the control plane first")}
	case v.Major == of.version.Major && v.Minor+allowed < of.version.Minor:
		return diag.Findings{o.at(o.runs.field, RuleSkew,
			fmt.Sprintf("%.40s is more than %d minor releases older than the control plane: %s", o.runs.version, allowed, where),
			"upgrade these machines first")}
	}
	return nil
}

// bootstrap checks the bootstrap configuration of machines for settings that the version of the machines has removed.
func (s *skew) bootstrap(p place, o *object, own map[known]*object, of plane, v semver.Version, said bool) diag.Findings {
	if !said {
		v = of.version
	}
	var out diag.Findings
	for _, ref := range o.refs {
		if ref.role != bootstrapTemplate {
			continue
		}
		config := own[ref.in(p)]
		if config == nil || config.runs == nil {
			continue
		}
		for _, gone := range config.runs.gone {
			if v.Major == 1 && v.Minor >= gone.minor {
				out = append(out, config.at(gone.field, RuleSkew,
					fmt.Sprintf("%s is gone since v1.%d, and %s %.80s is v%s", gone.what, gone.minor, o.Kind, o.Name, v), "remove it"))
			}
		}
	}
	return out
}
