package fleetrepo

import (
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// providerKinds are the beginnings of the kinds of infrastructure objects, and the names that clusterctl has for their providers.
var providerKinds = []struct{ prefix, name string }{
	{"AWS", "aws"},
	{"ROSA", "aws"},
	{"Azure", "azure"},
	{"Byo", "byoh"},
	{"CloudStack", "cloudstack"},
	{"Cloudscale", "cloudscale-ch-cloudscale"},
	{"Cox", "coxedge"},
	{"DO", "digitalocean"},
	{"Dev", "docker"},
	{"Docker", "docker"},
	{"GCP", "gcp"},
	{"HCloud", "hetzner"},
	{"Harvester", "harvester-harvester"},
	{"Hetzner", "hetzner"},
	{"Hivelocity", "hivelocity-hivelocity"},
	{"Huawei", "huawei"},
	{"IBM", "ibmcloud"},
	{"InMemory", "docker"},
	{"Incus", "incus"},
	{"IonosCloud", "ionoscloud-ionoscloud"},
	{"KK", "kubekey"},
	{"KubeVirt", "kubevirt"},
	{"Kubevirt", "kubevirt"},
	{"LXC", "incus"},
	{"Linode", "linode-linode"},
	{"Maas", "maas"},
	{"Metal3", "metal3"},
	{"MetalCluster", "sidero"},
	{"MetalMachine", "sidero"},
	{"MetalStack", "metal-stack"},
	{"Nested", "nested"},
	{"Nutanix", "nutanix"},
	{"OCI", "oci"},
	{"ONE", "opennebula"},
	{"OpenStack", "openstack"},
	{"Osc", "outscale"},
	{"Outscale", "outscale"},
	{"Oxide", "oxide"},
	{"Packet", "packet"},
	{"PooledRemoteMachine", "k0sproject-k0smotron"},
	{"Proxmox", "proxmox"},
	{"RemoteCluster", "k0sproject-k0smotron"},
	{"RemoteMachine", "k0sproject-k0smotron"},
	{"Scaleway", "scaleway"},
	{"Tinkerbell", "tinkerbell-tinkerbell"},
	{"VCD", "vcd"},
	{"VCluster", "vcluster"},
	{"VSphere", "vsphere"},
	{"Virtink", "virtink"},
	{"Vultr", "vultr-vultr"},
}

// ProviderOfKind returns clusterctl's name of the provider that has a kind of infrastructure objects; "" for an unknown kind.
func ProviderOfKind(kind string) string {
	for _, k := range providerKinds {
		if strings.HasPrefix(kind, k.prefix) {
			return k.name
		}
	}
	return ""
}

// maker is what makes the clusters of a flavour, as far as its chart tells.
type maker struct {
	// provider that a flavour of fleetctl needs; "" for a team's own flavour.
	provider string
	// kinds of infrastructure objects in the chart of a team's own flavour.
	kinds []string
}

// makerOf returns what makes the clusters of a flavour.
func (r *Repo) makerOf(flavour string) maker {
	if provider := providerOf(flavour); provider != "" {
		return maker{provider: provider}
	}
	names, err := r.filesBelow(path.Join(layout.ChartsDir, flavour, "templates"))
	if err != nil {
		return maker{}
	}
	var kinds []string
	for _, name := range names {
		content, err := r.read(name)
		if err != nil {
			continue // validate reports a chart that cannot be read
		}
		for _, kind := range infrastructureKinds(string(content)) {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return maker{kinds: kinds}
}

// in returns the infrastructure provider of a management cluster that makes the clusters; "" if that is not known.
func (k maker) in(m *v1alpha1.ManagementCluster) string {
	if k.provider != "" {
		return k.provider
	}
	for _, kind := range k.kinds {
		if provider := providerOfKind(m, kind); provider != "" {
			return provider
		}
	}
	return ""
}

// lacks returns the infrastructure provider that a management cluster needs for the clusters, and does not have. It is "" if the management
// cluster has what they need. It is also "" if nobody knows what they need: the kinds may be unknown, or a provider of the management
// cluster has a name that clusterctl does not know, and can be a changed copy of the provider that has these kinds.
func (k maker) lacks(m *v1alpha1.ManagementCluster) string {
	if k.provider != "" {
		if indexOf(m, v1alpha1.Provider{Name: k.provider}) < 0 {
			return k.provider
		}
		return ""
	}
	if k.in(m) != "" || slices.ContainsFunc(m.Providers, func(p v1alpha1.Provider) bool {
		return TypeOf(p) == v1alpha1.ProviderInfrastructure && !isKnown(p.Name)
	}) {
		return ""
	}
	for _, kind := range k.kinds {
		if provider := ProviderOfKind(kind); provider != "" {
			return provider
		}
	}
	return ""
}

// isKnown tells whether the kinds of a provider are known.
func isKnown(provider string) bool {
	return slices.ContainsFunc(providerKinds, func(k struct{ prefix, name string }) bool { return k.name == provider })
}

// providerOfKind returns the infrastructure provider of a management cluster that has a kind. A provider whose kinds are not known has the
// kinds that begin with its name, or with the part of it behind the owner: linode-linode has LinodeCluster.
func providerOfKind(m *v1alpha1.ManagementCluster, kind string) string {
	known := ProviderOfKind(kind)
	found, longest := "", 0
	for _, p := range m.Providers {
		if TypeOf(p) != v1alpha1.ProviderInfrastructure {
			continue
		}
		if p.Name == known {
			return known
		}
		_, behind, _ := strings.Cut(p.Name, "-")
		for _, beginning := range []string{p.Name, behind} {
			beginning = strings.ReplaceAll(beginning, "-", "")
			if len(beginning) > longest && strings.HasPrefix(strings.ToLower(kind), beginning) {
				found, longest = p.Name, len(beginning)
			}
		}
	}
	return found
}

var (
	// yamlKey is the beginning of a line with a field: what is before the field, and its name.
	yamlKey = regexp.MustCompile(`^(\s*(?:-\s+)*\{?)["']?(\w+)["']?\s*:(?:\s|$)`)
	// infrastructureGroup is the field of an object or a reference that names the API group of infrastructure.
	infrastructureGroup = regexp.MustCompile(`\b(?:apiVersion|apiGroup)["']?\s*:\s*["']?infrastructure\.cluster\.x-k8s\.io\b`)
	// kindField is the field with the kind.
	kindField = regexp.MustCompile(`\bkind["']?\s*:\s*["']?([A-Za-z0-9]+)`)
)

// infrastructureKinds returns the kinds of the infrastructure objects in a template of a chart, and of references to them. It reads lines,
// because a template is no YAML before it is rendered: the kind is in the line of the group, or in a line of the same object.
func infrastructureKinds(template string) []string {
	lines := strings.Split(template, "\n")
	var kinds []string
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "#") || !infrastructureGroup.MatchString(line) {
			continue
		}
		match := kindField.FindStringSubmatch(line)
		if match == nil {
			match = kindField.FindStringSubmatch(siblings(lines, i))
		}
		if match != nil {
			kinds = append(kinds, match[1])
		}
	}
	return kinds
}

// siblings returns the lines with the other fields of the object that has a field in line i.
func siblings(lines []string, i int) string {
	column, first := fieldAt(lines[i])
	var fields []string
	for j := i - 1; j >= 0 && !first; j-- {
		at, begins := fieldAt(lines[j])
		if at < column {
			break
		}
		if at == column {
			fields, first = append(fields, lines[j]), begins
		}
	}
	for _, line := range lines[i+1:] {
		at, begins := fieldAt(line)
		if at < column || at == column && begins {
			break
		}
		if at == column {
			fields = append(fields, line)
		}
	}
	return strings.Join(fields, "\n")
}

// fieldAt returns the column of a line's field, and whether it is the first of an item in a list. A line without a field, such as a
// comment or an action of the template, is in a column behind all others, and the line between two documents is before all others.
func fieldAt(line string) (column int, begins bool) {
	if strings.HasPrefix(line, "---") {
		return -1, false
	}
	match := yamlKey.FindStringSubmatch(line)
	if match == nil {
		return math.MaxInt, false
	}
	return len(match[1]), strings.Contains(match[1], "-")
}
