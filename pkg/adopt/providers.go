package adopt

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// Provider is a Cluster API provider that a repo has objects of, or installs.
type Provider struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Version, where the repo says which is installed.
	Version string `json:"version,omitempty"`
	// ManagementClusters that it is on.
	ManagementClusters []string `json:"managementClusters"`
}

// operatorTypes are the kinds of the Cluster API operator.
var operatorTypes = map[string]v1alpha1.ProviderType{
	"CoreProvider": v1alpha1.ProviderCore, "BootstrapProvider": v1alpha1.ProviderBootstrap,
	"ControlPlaneProvider":   v1alpha1.ProviderControlPlane,
	"InfrastructureProvider": v1alpha1.ProviderInfrastructure, "IPAMProvider": v1alpha1.ProviderIPAM, "AddonProvider": v1alpha1.ProviderAddon,
	"RuntimeExtensionProvider": v1alpha1.ProviderRuntimeExtension,
}

// prefixes are what the label of a provider's components begins with.
var prefixes = []struct {
	prefix string
	of     v1alpha1.ProviderType
}{
	{"infrastructure-", v1alpha1.ProviderInfrastructure},
	{"bootstrap-", v1alpha1.ProviderBootstrap},
	{"control-plane-", v1alpha1.ProviderControlPlane},
	{"ipam-", v1alpha1.ProviderIPAM},
	{"addon-", v1alpha1.ProviderAddon},
	{"runtime-extension-", v1alpha1.ProviderRuntimeExtension},
}

// providersIn finds the providers in a repo: the operator's provider objects, the components of releases in the repo, and the providers
// whose kinds the clusters use.
func providersIn(all []*render.Object) []Provider {
	found := map[[2]string]*Provider{}
	note := func(o *render.Object, of v1alpha1.ProviderType, name, version string) {
		if name == "" {
			return
		}
		at := [2]string{string(of), name}
		p := found[at]
		if p == nil {
			p = &Provider{Name: name, Type: string(of)}
			found[at] = p
		}
		if problem, _ := v1alpha1.VersionProblem(version); version != "" && problem == "" {
			p.Version = cmp.Or(p.Version, version)
		}
		if !slices.Contains(p.ManagementClusters, o.ManagementCluster) {
			p.ManagementClusters = append(p.ManagementClusters, o.ManagementCluster)
		}
	}
	for _, o := range all {
		if len(o.Targets) > 0 {
			continue
		}
		group, _, _ := strings.Cut(o.APIVersion, "/")
		switch {
		case group == "operator.cluster.x-k8s.io" && operatorTypes[o.Kind] != "":
			note(o, operatorTypes[o.Kind], o.Name, versionIn(o))
		case group == "infrastructure.cluster.x-k8s.io":
			note(o, v1alpha1.ProviderInfrastructure, fleetrepo.ProviderOfKind(o.Kind), "")
		case o.Kind == "Deployment" && group == "apps":
			label, version := componentOf(o)
			if label == "cluster-api" {
				note(o, v1alpha1.ProviderCore, label, version)
			}
			for _, p := range prefixes {
				if name, ok := strings.CutPrefix(label, p.prefix); ok {
					note(o, p.of, name, version)
				}
			}
		}
	}
	out := make([]Provider, 0, len(found))
	for _, p := range found {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Provider) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) })
	return out
}

// versionIn is the version that an object of the operator asks for.
func versionIn(o *render.Object) string {
	var says struct {
		Spec struct {
			Version string `json:"version"`
		} `json:"spec"`
	}
	if json.Unmarshal(o.JSON, &says) != nil {
		return ""
	}
	return says.Spec.Version
}

var imageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:(v[0-9][0-9A-Za-z.+-]*)(@sha256:[0-9a-f]+)?$`) })

// componentOf returns the provider of a release's Deployment, by the label of clusterctl's contract, and its version.
func componentOf(o *render.Object) (label, version string) {
	var says struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Name  string `json:"name"`
						Image string `json:"image"`
					} `json:"containers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(o.JSON, &says) != nil {
		return "", ""
	}
	for _, c := range says.Spec.Template.Spec.Containers {
		if m := imageTag().FindStringSubmatch(c.Image); m != nil && (c.Name == "manager" || version == "") {
			version = m[1]
		}
	}
	return says.Metadata.Labels["cluster.x-k8s.io/provider"], version
}
