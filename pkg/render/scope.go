package render

import (
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// scope is the part of the fleet to render. The zero value is the whole fleet.
type scope struct{ environment, cluster string }

// wants tells whether a file of the folder dir can matter for the scope. If the scope is a cluster, files in the folders of other clusters
// cannot.
func (s scope) wants(dir, file string) bool {
	if s.cluster == "" || path.Base(dir) != s.environment {
		return true
	}
	first, _, below := strings.Cut(strings.TrimPrefix(file, dir+"/"), "/")
	return !below || first == s.cluster || first == layout.CommonDir
}

// follows tells whether objects of a Kustomization can be in the scope.
func (s scope) follows(k *Kustomization) bool {
	if s.environment == "" {
		return true
	}
	if k.Environment != "" && k.Environment != s.environment {
		return false
	}
	return s.cluster == "" || k.Cluster == "" || k.Cluster == s.cluster || slices.Contains(k.Targets, s.cluster)
}

// holds tells whether an object is in the scope.
func (s scope) holds(o *Object) bool {
	if s.environment != "" && o.Environment != s.environment {
		return false
	}
	return s.cluster == "" || o.Cluster == s.cluster || slices.Contains(o.Targets, s.cluster)
}

// placed returns the environment and the cluster whose folder has a file; "" for none. all are the layouts of the management cluster.
func placed(all []layout.Layout, file string) (environment, cluster string) {
	rest, ok := strings.CutPrefix(file, v1alpha1.LayoutOf(all, file).Clusters()+"/")
	if !ok {
		return "", ""
	}
	environment, rest, _ = strings.Cut(rest, "/")
	cluster, _, below := strings.Cut(rest, "/")
	if !below || cluster == layout.CommonDir {
		cluster = ""
	}
	return environment, cluster
}
