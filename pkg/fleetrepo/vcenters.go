package fleetrepo

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// VCenter is a vCenter with clusters of the fleet.
type VCenter struct {
	// Server is its address, as HOST or HOST:PORT.
	Server string
	// Thumbprint of its certificate; "" if no cluster names one.
	Thumbprint string
}

// VCenters returns the vCenters that the clusters' own files name, each once: in the values of a chart, or in a
// VSphereCluster. It leaves out addresses that Flux fills in or takes from another source.
func (r *Repo) VCenters() ([]VCenter, error) {
	var all []VCenter
	err := r.eachDeclaration(func(src []byte) bool { return bytes.Contains(src, []byte("server")) }, func(_ string, document *yaml.Node) {
		var spec *yaml.Node
		switch kind := yamledit.Resolve(yamledit.Find(document, "kind")); {
		case kind == nil:
		case kind.Value == "HelmRelease":
			spec = yamledit.Find(document, "spec", "values")
		case kind.Value == "VSphereCluster":
			spec = yamledit.Find(document, "spec")
		}
		text := func(field string) string {
			if n := yamledit.Resolve(yamledit.Find(spec, field)); n != nil && n.Kind == yaml.ScalarNode && !strings.Contains(n.Value, "${") {
				return n.Value
			}
			return ""
		}
		server, _, _ := strings.Cut(strings.TrimPrefix(text("server"), "https://"), "/")
		if server != "" {
			all = append(all, VCenter{Server: server, Thumbprint: text("thumbprint")})
		}
	})
	slices.SortFunc(all, func(a, b VCenter) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(b.Thumbprint, a.Thumbprint))
	})
	return slices.CompactFunc(all, func(a, b VCenter) bool { return a.Server == b.Server }), err
}
