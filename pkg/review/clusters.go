package review

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/census"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/roots"
)

// Clusters lists the workload clusters of a fleet repo. It reads the clusters of the layout from their files. It renders the repo only if
// it finds Cluster API's own objects elsewhere. Unreadable files come back as findings. A sparse checkout that lacks files of the fleet is
// an error.
func Clusters(ctx context.Context, repo *fleetrepo.Repo, cacheDir string) ([]fleetrepo.Cluster, diag.Findings, error) {
	if err := gitrepo.CheckSparse(ctx, repo.Dir, fleetrepo.Matters); err != nil {
		return nil, nil, err
	}
	all, findings, err := repo.Clusters()
	if err != nil {
		return nil, nil, err
	}
	if !census.HasManifests(repo) {
		return all, findings, nil
	}
	result, err := Render(ctx, RenderOptions{Dir: repo.Dir, CacheDir: cacheDir})
	if err != nil {
		return nil, nil, err
	}
	all = append(all, ManifestClusters(result)...)
	slices.SortStableFunc(all, func(a, b fleetrepo.Cluster) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all, census.MergeErrors(findings, result.Findings), nil
}

// ManagementClusters lists the management clusters of a fleet repo, with how many clusters each makes: those of charts, and those of plain
// manifests.
func ManagementClusters(ctx context.Context, repo *fleetrepo.Repo, cacheDir string) ([]fleetrepo.ManagementCluster, error) {
	all, err := repo.ManagementClusters()
	if err != nil {
		return nil, err
	}
	clusters, _, err := Clusters(ctx, repo, cacheDir) // validate reports the findings
	if err != nil {
		return nil, err
	}
	for i := range all {
		for _, c := range clusters {
			if c.Manifests && c.ManagementCluster == all[i].Name {
				all[i].Clusters++
			}
		}
	}
	return all, nil
}

// Open opens the fleet repo with the folder dir. Without a fleet.yaml, Flux's own objects say what the repo applies.
func Open(dir string) (*fleetrepo.Repo, error) {
	top, declared, err := fleetrepo.FindAny(dir)
	if err != nil {
		return nil, err
	}
	if declared {
		return fleetrepo.Open(top)
	}
	files, err := render.Dir(top)
	if err != nil {
		return nil, err
	}
	fleet, err := roots.Assume(files, top)
	if err != nil {
		return nil, err
	}
	return fleetrepo.New(top, fleet), nil
}

// ManifestClusters returns the clusters among the objects that Flux would apply that are in no folder of the layout.
func ManifestClusters(result *render.Result) []fleetrepo.Cluster {
	side := sideOf(result.Objects)
	var all []fleetrepo.Cluster
	for _, o := range side.clusters {
		if render.IsManifestCluster(o) {
			all = append(all, side.manifestCluster(o))
		}
	}
	slices.SortStableFunc(all, func(a, b fleetrepo.Cluster) int {
		return cmp.Or(cmp.Compare(a.ManagementCluster, b.ManagementCluster), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// clusterObject has the fields of a Cluster in each version of its API.
type clusterObject struct {
	Spec struct {
		Paused            bool      `json:"paused"`
		InfrastructureRef reference `json:"infrastructureRef"`
		Topology          struct {
			Class    string `json:"class"`
			ClassRef struct {
				Name string `json:"name"`
			} `json:"classRef"`
			Version      string `json:"version"`
			ControlPlane struct {
				Replicas *int `json:"replicas"`
			} `json:"controlPlane"`
			Workers struct {
				MachineDeployments []topologyPool `json:"machineDeployments"`
				MachinePools       []topologyPool `json:"machinePools"`
			} `json:"workers"`
		} `json:"topology"`
	} `json:"spec"`
}

type topologyPool struct {
	Name     string `json:"name"`
	Replicas *int   `json:"replicas"`
}

// manifestCluster returns a cluster from the objects that declare it.
func (s *side) manifestCluster(o *render.Object) fleetrepo.Cluster {
	g := s.guardOf(o, nil)
	c := fleetrepo.Cluster{
		Name: o.Name, Namespace: o.Namespace, ManagementCluster: o.ManagementCluster, Manifests: true, Pools: []fleetrepo.Pool{},
		Unprotected: g.clusterOpen || g.namespaceOpen || g.release != nil && g.releaseOpen && g.clusterOpen || len(g.parts) > 0,
		File:        o.Source.File, Line: o.Source.Line,
	}
	var says clusterObject
	if json.Unmarshal(o.JSON, &says) != nil {
		return c // the schema reports what is wrong
	}
	t := &says.Spec.Topology
	c.Flavour = cmp.Or(t.Class, t.ClassRef.Name, says.Spec.InfrastructureRef.Kind)
	c.KubernetesVersion, c.ControlPlane, c.Paused = t.Version, t.ControlPlane.Replicas, says.Spec.Paused
	for _, p := range slices.Concat(t.Workers.MachineDeployments, t.Workers.MachinePools) {
		c.Pools = append(c.Pools, fleetrepo.Pool{Name: p.Name, Replicas: p.Replicas, Line: o.Source.Line})
	}
	for _, part := range s.all {
		if part.Cluster != o.Cluster || part.ManagementCluster != o.ManagementCluster || part.Namespace != o.Namespace || len(part.Targets) > 0 {
			continue
		}
		m := machinesOf(part)
		switch {
		case m == nil:
		case m.isPool():
			c.Pools = append(c.Pools, m.declared(part))
		default:
			c.ControlPlane = m.Spec.Replicas
			c.KubernetesVersion = cmp.Or(c.KubernetesVersion, m.version())
		}
	}
	for i := range c.Pools { // the control plane of a cloud may not have this field
		c.KubernetesVersion = cmp.Or(c.KubernetesVersion, c.Pools[i].KubernetesVersion)
		if c.Pools[i].KubernetesVersion == c.KubernetesVersion {
			c.Pools[i].KubernetesVersion = ""
		}
	}
	return c
}

// declared returns the pool that a MachineDeployment or MachinePool declares.
func (m *machines) declared(o *render.Object) fleetrepo.Pool {
	p := fleetrepo.Pool{
		Name: strings.TrimPrefix(o.Name, m.Spec.ClusterName+"-"), Replicas: m.Spec.Replicas, KubernetesVersion: m.version(), Line: o.Source.Line,
	}
	low, errLow := strconv.Atoi(m.Metadata.Annotations[minAnnotation])
	high, errHigh := strconv.Atoi(m.Metadata.Annotations[maxAnnotation])
	if errLow == nil && errHigh == nil {
		p.Replicas, p.Min, p.Max = nil, &low, &high
	}
	return p
}
