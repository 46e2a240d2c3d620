package rendertest

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Fleet is a fleet repo that Random has made.
type Fleet struct {
	// Files by their slash-separated paths.
	Files map[string][]byte
	// Environments in the order of fleet.yaml; Features and Tenants are what it has.
	Environments, Features, Tenants []string
	Clusters                        []RandomCluster
}

// controller stands for the Deployments in Flux's components, of which one is patched.
const controller = `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: kustomize-controller
  namespace: flux-system
spec:
  selector: {matchLabels: {app: kustomize-controller}}
  template:
    metadata: {labels: {app: kustomize-controller}}
    spec:
      containers:
      - name: manager
        image: kustomize-controller:v1
        args: [--watch-all-namespaces=true]
`

// RandomCluster is a cluster of a Fleet.
type RandomCluster struct {
	Name, Environment, Flavour string
	// File declares it.
	File string
	// Aliases says that the file may have aliases. Then some edits of it are not possible.
	Aliases bool
	// Pools says that it has a list of pools, which may be empty.
	Pools bool
	// Size has the other fields that a new pool needs. Label is a label that its nodes may have.
	Size  map[string]any
	Label string
}

// Changes returns the files as a change of an empty folder.
func (f *Fleet) Changes() *manifest.ChangeSet {
	var changes manifest.ChangeSet
	for name, content := range f.Files {
		changes.Write(manifest.File{Path: name, Content: content})
	}
	return &changes
}

// Random makes a valid fleet repo with at least one cluster of each flavour, in the styles of several people. The same seed makes the same
// fleet.
func Random(seed uint64) (*Fleet, error) {
	var notes int
	m := &maker{
		Rand: rand.New(rand.NewPCG(seed, 0)), notes: &notes, //nolint:gosec // the same for the same seed
		fleet: &Fleet{Files: map[string][]byte{}, Environments: []string{"dev", "staging", "prod-eu", "prod-us"}},
	}
	m.fleet.Environments = m.fleet.Environments[:2+m.IntN(3)]
	m.released = m.IntN(2) == 0 && len(m.fleet.Environments) > 2
	for _, step := range []func() error{m.repo, m.management, m.addons, m.clusters} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("make a fleet of seed %d: %w", seed, err)
		}
	}
	return m.fleet, nil
}

// maker makes one fleet.
type maker struct {
	*rand.Rand
	fleet *Fleet
	notes *int
	// released: production follows a channel of tags.
	released bool
	// layouts are those of the management clusters' homes, followed by those of further clouds in which they have folders.
	layouts []layout.Layout
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

// source is the source that an environment follows; "" for the main branch.
func (m *maker) source(environment string) string {
	if m.released && strings.HasPrefix(environment, "prod") {
		return "release"
	}
	return ""
}

// add adds files to the fleet. It writes files that people usually edit in the style of a person.
func (m *maker) add(files ...manifest.File) error {
	for _, f := range files {
		byHand := strings.HasSuffix(f.Path, ".yaml") && !strings.HasPrefix(f.Path, layout.ChartsDir+"/")
		if byHand && m.chance(70) {
			if err := m.write(f, false); err != nil {
				return err
			}
			continue
		}
		m.fleet.Files[f.Path] = f.Content
	}
	return nil
}

// write adds a file to the fleet in the style of a person.
func (m *maker) write(f manifest.File, aliases bool) error {
	h := &hand{Rand: m.Rand, notes: m.notes, aliases: aliases}
	content, err := h.rewrite(f.Content)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	m.fleet.Files[f.Path] = content
	return nil
}

// repo makes fleet.yaml and the charts.
func (m *maker) repo() error {
	fleet := &v1alpha1.Fleet{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: "random"}}
	fleet.Spec.Git.URL = "https://git.example.com/fleet.git"
	if m.released {
		fleet.Spec.Channels = []v1alpha1.Channel{{Name: "release", Tag: "v*"}}
	}
	for _, name := range m.fleet.Environments {
		fleet.Spec.Environments = append(fleet.Spec.Environments, v1alpha1.Environment{Name: name, Channel: m.source(name)})
	}
	providers := func(names ...string) []v1alpha1.Provider {
		var all []v1alpha1.Provider
		for _, name := range names {
			all = append(all, v1alpha1.Provider{Name: name})
		}
		return all
	}
	host := v1alpha1.Host{Type: v1alpha1.HostKind}
	mgmt := v1alpha1.ManagementCluster{Name: "mgmt", Host: host, Providers: providers("docker", "vsphere")}
	more := []string{"aws", "azure", "gcp"}
	m.layouts = []layout.Layout{{Cloud: "docker", Generation: "v1"}}
	if m.chance(50) {
		cloud := v1alpha1.ManagementCluster{
			Name: "cloud", Host: host, Generation: "v2", KubernetesVersion: "v1.36.3",
			Providers: providers(more...),
		}
		m.layouts = append(m.layouts, layout.Layout{Cloud: "aws", Generation: "v2"})
		fleet.Spec.ManagementClusters = []v1alpha1.ManagementCluster{mgmt, cloud}
	} else {
		mgmt.Providers = append(mgmt.Providers, providers(more...)...)
		fleet.Spec.ManagementClusters = []v1alpha1.ManagementCluster{mgmt}
	}
	m.clouds(fleet)
	content, err := v1alpha1.Marshal(fleet)
	if err != nil {
		return err
	}
	for _, flavour := range Flavours {
		files, err := scaffold.ChartFiles(flavour)
		if err != nil {
			return err
		}
		if err := m.add(files...); err != nil {
			return err
		}
	}
	return m.add(manifest.File{Path: v1alpha1.FileName, Content: content})
}

const gitSource = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: %s
  namespace: flux-system
spec:
  interval: 1m0s
  ref:
    %s
  url: https://git.example.com/fleet.git
`

const gitSync = `---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 10m0s
  path: ./%s
  decryption:
    provider: sops
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
`

// management makes the own files of each management cluster, and the shared files of its environments.
func (m *maker) management() error {
	for _, l := range m.layouts {
		sync := []byte(fmt.Sprintf(gitSource, "flux-system", "branch: main") + fmt.Sprintf(gitSync, l.Management()))
		system := []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: flux-system\n")
		components := slices.Concat(system, []byte(controller))
		files := []manifest.File{
			{Path: l.SyncFile(), Content: sync},
			{Path: path.Join(path.Dir(l.SyncFile()), layout.ComponentsFile), Content: system},
			{Path: path.Join(path.Dir(l.SyncFile()), "kustomization.yaml"), Content: []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: " +
				"Kustomization\nresources:\n- gotk-components.yaml\n- gotk-sync.yaml\n")},
			{Path: l.Management() + "/identities.yaml", Content: []byte(identities)},
		}
		if m.released {
			files = append(files, manifest.File{
				Path:    l.SourceDir("release") + "/gitrepository.yaml",
				Content: fmt.Appendf(nil, gitSource, "release", "tag: v1.0.0"),
			})
		}
		if !l.IsHome() {
			files = nil
		}
		for _, name := range m.fleet.Environments {
			made, err := scaffold.EnvironmentFiles(l, scaffold.Environment{Name: name, Source: m.source(name)})
			if err != nil {
				return err
			}
			opts := scaffold.WorkloadFluxOptions{Layout: l, Environment: name, Components: components}
			if m.source(name) == "" {
				if opts.Source, err = scaffold.SourceOf(sync); err != nil {
					return err
				}
			}
			flux, err := scaffold.WorkloadFluxFiles(opts)
			if err != nil {
				return err
			}
			files = append(files, slices.Concat(made, flux)...)
		}
		if err := m.add(files...); err != nil {
			return err
		}
	}
	return nil
}

// clusters makes one cluster of each flavour and some more.
func (m *maker) clusters() error {
	flavours := slices.Clone(Flavours)
	for m.chance(60) {
		flavours = append(flavours, Flavours[m.IntN(len(Flavours))])
	}
	for i, flavour := range flavours {
		opts := scaffold.ClusterOptions{
			Name: fmt.Sprintf("%s-%d", strings.TrimSuffix(flavour, "-kubeadm"), i), Layout: m.layoutFor(flavour),
			Environment: m.fleet.Environments[m.IntN(len(m.fleet.Environments))], Flavour: flavour, Flux: scaffold.FluxNone,
		}
		if flavour != "in-memory" && m.chance(60) {
			opts.Flux = []scaffold.FluxMode{scaffold.FluxOwn, scaffold.FluxRemote}[m.IntN(2)]
			if source := m.source(opts.Environment); source != "" {
				opts.SourceDir = opts.Layout.SourceDir(source)
			}
		}
		if err := m.cluster(opts); err != nil {
			return err
		}
	}
	for _, l := range m.layouts {
		for _, env := range m.fleet.Environments {
			if err := m.list(l.Environment(env)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *maker) cluster(opts scaffold.ClusterOptions) (err error) {
	c := RandomCluster{Name: opts.Name, Environment: opts.Environment, Flavour: opts.Flavour, Aliases: m.chance(20), Size: map[string]any{}}
	if opts.Values, err = m.values(&c); err != nil {
		return err
	}
	files, err := scaffold.ClusterFiles(opts)
	if err != nil {
		return err
	}
	c.File = files[0].Path
	m.fleet.Clusters = append(m.fleet.Clusters, c)
	if err := m.chart(opts, &files[0]); err != nil {
		return err
	}
	if m.chance(15) {
		files[0].Content = []byte(strings.Replace(string(files[0].Content), "\nspec:\n", "\nspec:\n  suspend: true\n", 1))
	}
	if !c.Aliases && m.chance(10) { // as `fleetctl cluster add` has left it
		m.fleet.Files[c.File] = files[0].Content
	} else if err := m.write(files[0], c.Aliases); err != nil {
		return err
	}
	shared := func(feature string) bool { // all clusters of the environment have it already
		return m.fleet.Files[scaffold.FeatureTarget{Layout: opts.Layout, Environment: opts.Environment}.FeatureFile(feature)] != nil
	}
	if len(m.fleet.Features) > 0 && !shared(m.fleet.Features[0]) && m.chance(40) {
		file, err := scaffold.EnableFeature(m.fleet.Features[0],
			scaffold.FeatureTarget{Layout: opts.Layout, Environment: opts.Environment, Cluster: opts.Name})
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	return m.add(files[1:]...)
}

// ownChart is the field of a cluster with a chart of its own.
const ownChart = `  chart:
    spec:
      chart: ./charts/%s
      sourceRef:
        kind: GitRepository
        name: flux-system
        namespace: flux-system
      reconcileStrategy: Revision
`

// chart writes the shared chart of a cluster, or gives the cluster a chart of its own. Only a cluster that follows the branch of the fleet
// repo can have one.
func (m *maker) chart(opts scaffold.ClusterOptions, cluster *manifest.File) error {
	if m.source(opts.Environment) == "" && m.chance(20) {
		shared := fmt.Sprintf("  # ../chart-%s.yaml\n  chartRef:\n    kind: HelmChart\n    name: %s\n    namespace: flux-system\n", opts.Flavour,
			layout.ChartName(opts.Environment, opts.Flavour))
		cluster.Content = []byte(strings.Replace(string(cluster.Content), shared, fmt.Sprintf(ownChart, opts.Flavour), 1))
		return nil
	}
	file, err := scaffold.EnvironmentChart(opts.Layout, opts.Environment, opts.Flavour)
	if err != nil || m.fleet.Files[file.Path] != nil {
		return err
	}
	m.fleet.Files[file.Path] = file.Content
	return nil
}

// list may write a kustomization.yaml that names the files of an environment's folder. Without it, Flux applies every file.
func (m *maker) list(dir string) error {
	if !m.chance(30) {
		return nil
	}
	names := []any{"common"}
	for name := range m.fleet.Files {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok && !strings.HasPrefix(rest, "common/") {
			names = append(names, rest)
		}
	}
	slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) }) //nolint:forcetypeassert // all are
	content, err := yaml.Marshal(map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names})
	if err != nil {
		return err
	}
	return m.write(manifest.File{Path: dir + "/kustomization.yaml", Content: content}, false)
}
