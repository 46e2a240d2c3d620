package views

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Clusters is the output of `fleetctl cluster list`: some of all clusters, and the problems in the files of others.
func Clusters(some, all []fleetrepo.Cluster, problems diag.Findings) View {
	return list(clusterList{"1", some, problems}, some, clusterTable(all))
}

// Cluster is what `fleetctl cluster show` shows.
func Cluster(c *fleetrepo.Cluster) View {
	return view{struct {
		FormatVersion string             `json:"formatVersion"`
		Cluster       *fleetrepo.Cluster `json:"cluster"`
	}{"1", c}, func(p *Page) error { return clusterView(p.Out, c) }}
}

// Pools is the output of `fleetctl pool list`: the pools of some of all clusters, and the problems in the files of others. If the reader
// has named the one cluster, the name of a pool is enough; otherwise commands call a pool by two names, that of its cluster and its own.
func Pools(some, all []fleetrepo.Cluster, problems diag.Findings, ofNamed bool) View {
	rows := []clusterPool{}
	clusters := clusterTable(all)
	for _, c := range some {
		for _, p := range c.Pools {
			called := p.Name
			if !ofNamed {
				called = clusters.name(c) + " " + p.Name
			}
			rows = append(rows, clusterPool{c.Name, c.Environment, p, cmp.Or(p.KubernetesVersion, c.KubernetesVersion), c.File, called})
		}
	}
	return list(poolList{"1", rows, problems}, rows, poolTable)
}

// clusterList is the result of cluster list.
type clusterList struct {
	FormatVersion string              `json:"formatVersion"`
	Clusters      []fleetrepo.Cluster `json:"clusters"`
	Problems      diag.Findings       `json:"problems"`
}

// clusterTable is the table of some clusters. all are the clusters of the fleet, to tell clusters of the same name apart.
func clusterTable(all []fleetrepo.Cluster) table[fleetrepo.Cluster] {
	return table[fleetrepo.Cluster]{
		none: "There are no clusters; `fleetctl cluster add` declares one.",
		name: fleetrepo.Called(all),
		columns: []column[fleetrepo.Cluster]{
			{title: "ENVIRONMENT", of: func(c fleetrepo.Cluster) string { return cmp.Or(c.Environment, "-") }},
			{title: "NAME", of: func(c fleetrepo.Cluster) string { return c.Name }},
			{title: "NAMESPACE", optional: true, of: func(c fleetrepo.Cluster) string { return c.Namespace }},
			{title: "FLAVOUR", of: func(c fleetrepo.Cluster) string { return c.Flavour }},
			{title: "VERSION", of: func(c fleetrepo.Cluster) string { return c.KubernetesVersion }},
			{title: "CONTROL PLANE", of: controlPlane},
			{title: "POOLS", of: pools},
			{title: "MANAGEMENT CLUSTER", wide: true, of: func(c fleetrepo.Cluster) string { return c.ManagementCluster }},
			{title: "FILE", wide: true, of: func(c fleetrepo.Cluster) string { return fmt.Sprintf("%s:%d", c.File, c.Line) }},
			{title: "STATE", of: clusterState},
		},
	}
}

func controlPlane(c fleetrepo.Cluster) string {
	if c.ControlPlane == nil {
		return "-"
	}
	return strconv.Itoa(*c.ControlPlane)
}

// pools lists all pools in one line: general 3, burst 1-5.
func pools(c fleetrepo.Cluster) string {
	parts := make([]string, 0, len(c.Pools))
	for _, p := range c.Pools {
		parts = append(parts, p.Name+" "+p.Size())
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func clusterState(c fleetrepo.Cluster) string {
	switch {
	case c.Removing:
		return "being removed"
	case c.Paused:
		return "paused"
	case c.Unprotected:
		return "not protected"
	}
	return ""
}

func clusterView(w io.Writer, c *fleetrepo.Cluster) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"Cluster", c.Name},
		{"Namespace", c.Namespace},
		{"Environment", c.Environment},
		{"Management cluster", c.ManagementCluster},
		{"Flavour", c.Flavour},
		{"Kubernetes", c.KubernetesVersion},
		{"Control plane", controlPlane(*c)},
		{"State", clusterState(*c)},
		{"File", fmt.Sprintf("%s:%d", c.File, c.Line)},
	} {
		if row[1] != "" {
			ui.Fprintf(t, "%s\t%s\n", row[0], row[1])
		}
	}
	for _, p := range c.Pools {
		line := p.Nodes()
		if p.KubernetesVersion != "" {
			line += ", " + p.KubernetesVersion
		}
		ui.Fprintf(t, "Pool %s\t%s\n", p.Name, line)
	}
	return t.Flush()
}

var poolTable = table[clusterPool]{
	none: "There are no pools; `fleetctl pool add` adds one.",
	name: func(p clusterPool) string { return p.called },
	columns: []column[clusterPool]{
		{title: "ENVIRONMENT", of: func(p clusterPool) string { return cmp.Or(p.Environment, "-") }},
		{title: "CLUSTER", of: func(p clusterPool) string { return p.Cluster }},
		{title: "POOL", of: func(p clusterPool) string { return p.Name }},
		{title: "NODES", of: func(p clusterPool) string { return p.Size() }},
		{title: "VERSION", of: func(p clusterPool) string { return p.KubernetesVersion }},
		{title: "FILE", wide: true, of: func(p clusterPool) string { return fmt.Sprintf("%s:%d", p.File, p.Line) }},
	},
}

// clusterPool is a pool with its cluster.
type clusterPool struct {
	Cluster     string `json:"cluster"`
	Environment string `json:"environment"`
	fleetrepo.Pool
	// KubernetesVersion of the pool's nodes: the pool's own version, or else the cluster's.
	KubernetesVersion string `json:"kubernetesVersion"`
	File              string `json:"file"`

	called string // by commands
}

// poolList is the result of pool list.
type poolList struct {
	FormatVersion string        `json:"formatVersion"`
	Pools         []clusterPool `json:"pools"`
	Problems      diag.Findings `json:"problems"`
}
