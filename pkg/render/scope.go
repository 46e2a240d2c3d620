package render

import (
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// scope is the part of the fleet that is asked for; the zero value is all of it.
type scope struct{ environment, cluster string }

// wants says whether a file of folder dir can matter: with a cluster as scope, those in the folders of others do not.
func (s scope) wants(dir, file string) bool {
	if s.cluster == "" || path.Base(dir) != s.environment {
		return true
	}
	first, _, below := strings.Cut(strings.TrimPrefix(file, dir+"/"), "/")
	return !below || first == s.cluster || first == layout.CommonDir
}

// follows says whether what a Kustomization applies can be in the scope.
func (s scope) follows(k *Kustomization) bool {
	if s.environment == "" {
		return true
	}
	if k.Environment != "" && k.Environment != s.environment {
		return false
	}
	return s.cluster == "" || k.Cluster == "" || k.Cluster == s.cluster || slices.Contains(k.Targets, s.cluster)
}

// holds says whether an object is in the scope.
func (s scope) holds(o *Object) bool {
	if s.environment != "" && o.Environment != s.environment {
		return false
	}
	return s.cluster == "" || o.Cluster == s.cluster || slices.Contains(o.Targets, s.cluster)
}

// placed tells of a file of a management cluster's repo which environment's and which cluster's folder it is in; "" for none. all are the
// layouts of the management cluster.
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
