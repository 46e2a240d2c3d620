// Package repofiles makes the files that init wants in the fleet repo: the scaffold, Flux's own manifests, the Flux of the workload
// clusters, fleet.lock, and what is encrypted. It commits nothing.
package repofiles

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// Content is what init wants in the fleet repo, made of what it knows by then.
type Content struct {
	Session  *session.Session
	Endpoint *repoaccess.Endpoint
	// Manifests are nil for a scaffold, which reads none.
	Manifests *resolve.Manifests
	// Client of the management cluster; nil for a scaffold and a dry run.
	Client *kube.Client
	keys   session.Keyring
}

// repoFiles is all that init wants in the fleet repo at root. What is the user's is left alone: present tells what is there already.
// It is computed anew on every try.
func (c *Content) repoFiles(ctx context.Context, root string, present func(manifest.File) bool) ([]manifest.File, error) {
	files, err := c.missingScaffold(ctx, root, present)
	if err != nil {
		return nil, err
	}
	system, err := c.systemFiles(root, present)
	if err != nil {
		return nil, err
	}
	files = append(files, system...)
	channels, err := c.Session.ChannelFiles(system)
	if err != nil {
		return nil, err
	}
	workload, err := c.workloadFiles(root, present)
	if err != nil {
		return nil, err
	}
	var pipeline []manifest.File
	if isNewRepo(c.Session, root) && !slices.ContainsFunc(system, present) { // in a repo that Flux follows, what is missing was taken out
		if pipeline, err = pipelineFiles(c.Session, present); err != nil {
			return nil, err
		}
	}
	return c.Manifests.WithLock(root, slices.Concat(files, channels, workload, pipeline), present)
}

// missingScaffold are the files of a new fleet repo that are not there yet, and fleet.yaml, which may have changed.
func (c *Content) missingScaffold(ctx context.Context, root string, present func(manifest.File) bool) ([]manifest.File, error) {
	scaffolded, err := c.scaffoldFiles(ctx, root)
	if err != nil {
		return nil, err
	}
	byPath := map[string]manifest.File{}
	for _, f := range scaffolded {
		byPath[f.Path] = f
	}
	return scaffold.Missing(scaffolded, func(path string) bool {
		f, wanted := byPath[path]
		if !wanted { // another name of a file that is wanted
			f.Path = path
		}
		return path != v1alpha1.FileName && present(f)
	}), nil
}

// isNewRepo tells whether no other management cluster's Flux is in the repo.
func isNewRepo(s *session.Session, root string) bool {
	return !slices.ContainsFunc(s.Fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(m.Dir()), flux.Name))
		return m.Name != s.DeclaredAs() && err == nil
	})
}

// pipelineFiles returns the pipeline that checks each pull request, if the forge is known. Where a token needs a further right for a
// pipeline (GitHub), init over https leaves the pipeline to `fleetctl ci add`, because a push that the forge refuses would fail init.
func pipelineFiles(s *session.Session, present func(manifest.File) bool) ([]manifest.File, error) {
	git := s.Fleet.Spec.Git
	forge := git.ForgeType()
	if forge == "" || forge.HasPipelineRight() && repoaccess.ByToken(s) {
		return nil, nil
	}
	files, err := scaffold.CIFiles(forge, version.Released())
	return slices.DeleteFunc(files, present), err
}

// inMemoryFlavour needs nothing but the docker provider's manager.
const inMemoryFlavour = "in-memory"

// flavours are the charts that fleetctl brings along for the management cluster's providers, the one to begin with first.
func flavours(s *session.Session) []string {
	var charts []string
	for _, p := range s.Mgmt.Providers {
		if p.Type == v1alpha1.ProviderInfrastructure {
			charts = append(charts, scaffold.FlavoursFor(p.Name)...)
		}
	}
	if i := slices.Index(charts, inMemoryFlavour); i > 0 && s.Traits().Processes {
		// Where such a host is, there may be no engine for a cluster of containers: the README's example has to work.
		charts = slices.Insert(slices.Delete(charts, i, i+1), 0, inMemoryFlavour)
	}
	return charts
}

// FirstCluster is the command that declares a cluster in a new fleet. Nothing is left for it to ask, but what only the user knows, such as
// a region. For providers without a chart of ours it is the command that makes one.
func FirstCluster(s *session.Session, local bool) string {
	flavours := flavours(s)
	if len(flavours) == 0 {
		return "fleetctl chart add NAME --from TEMPLATE.yaml   # a flavour of clusters, made from a template of clusterctl"
	}
	command := "fleetctl cluster add demo --flavour " + flavours[0]
	if environments := s.Fleet.Spec.Environments; len(environments) > 0 {
		command += " --environment " + environments[0].Name
	}
	if local {
		return command + " --commit"
	}
	return command + " --push"
}

// fleetFile is fleet.yaml, with the versions where they are chosen.
func (c *Content) fleetFile() []byte {
	if c.Manifests == nil {
		return c.Session.FleetFile
	}
	return c.Manifests.FleetFile
}

func (c *Content) scaffoldFiles(ctx context.Context, root string) ([]manifest.File, error) {
	s := c.Session
	version, err := c.exampleVersion(ctx)
	if err != nil {
		return nil, err
	}
	environments := make([]scaffold.Environment, 0, len(s.Fleet.Spec.Environments))
	for _, e := range s.Fleet.Spec.Environments {
		channel := s.Fleet.ChannelOf(e.Name)
		// What applies an environment of a channel of tags is made by the first promotion whose tag has the environment.
		environments = append(environments, scaffold.Environment{Name: e.Name, Source: channel.Source(), Unreleased: channel.IsTag()})
	}
	files, err := scaffold.Repo(scaffold.RepoOptions{
		Fleet: s.Fleet.Metadata.Name, FleetYAML: c.fleetFile(), ManagementCluster: s.Mgmt.Name,
		Layout:       s.Layout(),
		Environments: environments, Charts: flavours(s), KubernetesVersion: version, Local: c.Endpoint.Local,
	})
	if err != nil {
		return nil, err
	}
	for _, f := range s.Folders(root) {
		folders, err := scaffold.FolderFiles(f.Layout, f.Environment)
		if !f.IsHome() {
			i := slices.IndexFunc(environments, func(e scaffold.Environment) bool { return e.Name == f.Environment })
			folders, err = scaffold.EnvironmentFolder(f.Layout, environments[i])
		}
		if err != nil {
			return nil, err
		}
		files = append(files, folders...)
	}
	return files, nil
}

// exampleVersion is the Kubernetes version of the cluster in the new repo's README: that of the management cluster, which its host chose
// where fleet.yaml does not say.
func (c *Content) exampleVersion(ctx context.Context) (string, error) {
	if v := c.Session.Mgmt.KubernetesVersion; v != "" {
		return v, nil
	}
	if c.Client == nil { // a dry run, or a scaffold
		return c.Session.Traits().KubernetesVersion, nil
	}
	v, err := c.Client.ServerVersion(ctx)
	v, _, _ = strings.Cut(v, "+") // what a distribution appends is no version of Kubernetes
	return v, err
}

// ManifestFiles are the manifests of a run: what is applied to the management cluster, and what is committed.
func (c *Content) ManifestFiles(ctx context.Context) ([]manifest.File, error) {
	var files []manifest.File
	applied, err := c.Manifests.Source.Render(ctx, c.Manifests.Providers)
	if err != nil {
		return nil, err
	}
	for _, f := range applied {
		files = append(files, manifest.File{Path: filepath.ToSlash(filepath.Join("apply", f.Name)), Content: f.Content})
	}
	sync, err := flux.GenerateSync(repoaccess.SyncOptions(c.Session, c.Endpoint))
	if err != nil {
		return nil, err
	}
	files = append(files,
		manifest.File{Path: "apply/flux-components.yaml", Content: c.Manifests.Flux.Content},
		manifest.File{Path: "apply/flux-sync.yaml", Content: sync})
	root := c.Session.Opts.Dir
	committed, err := c.repoFiles(ctx, root, func(f manifest.File) bool {
		_, err := os.Lstat(filepath.Join(root, filepath.FromSlash(f.Path)))
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range committed {
		files = append(files, manifest.File{Path: "repo/" + f.Path, Content: f.Content})
	}
	return files, nil
}

// FirstRules are the rules of encryption where the repo has none, for the key that init would take or make: secrets need them, but no
// cluster.
func (c *Content) FirstRules(ctx context.Context, root string) ([]gitrepo.Change, error) {
	for _, dir := range []string{root, c.Session.Opts.Dir} { // what is committed, and what a person has on disk
		if rules, err := fleetsecrets.Rules(dir); err != nil || rules != nil {
			return nil, err
		}
	}
	keys, err := c.keys.Ensure(ctx, c.Session, nil, root)
	if err != nil {
		return nil, err
	}
	return []gitrepo.Change{{Path: secret.RulesFile, Content: secret.NewRules(keys[:1].Recipients())}}, nil
}

// ScaffoldedFiles are those of repoFiles that are made of what this program has in it alone.
func (c *Content) ScaffoldedFiles(ctx context.Context, root string, present func(manifest.File) bool) ([]manifest.File, error) {
	files, err := c.missingScaffold(ctx, root, present)
	if err != nil || !c.Session.NewFleet {
		return files, err
	}
	pipeline, err := pipelineFiles(c.Session, present)
	return append(files, pipeline...), err
}
