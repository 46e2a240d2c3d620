// Package session collects what a command about a management cluster needs before it changes anything: the fleet as fleet.yaml and the
// options declare it, the management cluster and its host, the owner of each, and their credentials, keys and snapshots. It makes no
// cluster.
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/steps"
	"github.com/fleetctl/fleetctl/pkg/variables"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Session belongs to one command. After Open only its identity may change, so steps that run side by side may read it. Values that steps
// make for each other belong to their run.
type Session struct {
	Deps management.Deps
	Opts Options

	Fleet     *v1alpha1.Fleet
	Mgmt      *v1alpha1.ManagementCluster
	FleetFile []byte // fleet.yaml as it is, or as it would be written of the options alone
	NewFleet  bool   // there was no fleet.yaml

	// StandbyOf is the management cluster that this standby takes over from. It is "" for a management cluster that is not a standby.
	StandbyOf string
	// Waiting is the UID of this command's standby until it takes over: see OwnNote.
	Waiting string

	Self        *ownership.Repo
	id          currentID // of the fleet; see Identity
	Provisional bool      // it is not in the repo yet
	Stranger    error     // why the record of this management cluster is not ours to use
	Connected   bool      // another machine made the management cluster: this one has a way to it, and none to its host

	Cluster state.Cluster
	Host    host.Host
	HostErr error          // why there is no host: no engine answers, or the parent does not. Preflight tells it together with all else.
	Bundle  *bundle.Bundle // nil without --bundle
	// ManifestDir is the folder that the bundle's manifests are unpacked to; "" without a bundle.
	ManifestDir string

	CA         []byte // certificate authorities of the remote
	knownHosts string // lines of --ssh-known-hosts

	// Values that are looked up when they are first asked for.
	onMachine Lookup[*engine.Engine]
	resolved  Lookup[*variables.Resolved]
	deployKey Lookup[*gitrepo.DeployKey]
	published Lookup[fs.FS]
}

// Open is Read, and finds the host that carries the management cluster.
func Open(ctx context.Context, deps management.Deps, opts Options) (*Session, error) {
	s, err := Read(ctx, deps, opts)
	if err != nil {
		return nil, err
	}
	if err := s.ReachHost(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// OpenAlone is Open for a command that must run alone. It refuses a management cluster of another fleet, and locks the management cluster
// until done is called.
func OpenAlone(ctx context.Context, deps management.Deps, opts Options, command string) (s *Session, done func(), err error) {
	if s, err = Open(ctx, deps, opts); err != nil {
		return nil, nil, steps.TimedOut(ctx, err)
	}
	if s.Stranger != nil {
		s.Close()
		return nil, nil, s.Stranger
	}
	unlock, err := s.Cluster.Lock(command)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, func() { unlock(); s.Close() }, nil
}

// Read reads fleet.yaml, the bundle's index and the state folder, and settles the options. It calls no cluster. It changes nothing, but for
// cloning an existing fleet repo into an empty folder.
func Read(ctx context.Context, deps management.Deps, opts Options) (*Session, error) {
	s := &Session{Deps: deps, Opts: opts}
	if err := s.settle(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) settle(ctx context.Context) (err error) {
	if err := s.fetchExisting(ctx); err != nil {
		return err
	}
	if err := s.loadFleet(ctx); err != nil {
		return err
	}
	if s.Mgmt, s.StandbyOf, err = chosen(s.Fleet, s.Opts.Cluster); err != nil {
		return err
	}
	if own := s.Mgmt.Repository; own != nil {
		return diag.Usage("run it in a clone of that; `fleetctl bootstrap --management "+s.Mgmt.Name+" --stand-alone` here makes it",
			"management cluster %s has a fleet repo of its own, %s", s.Mgmt.Name, own.Git.URL)
	}
	if s.Opts.Sources != nil {
		if err := s.Opts.Sources.Check(s.Fleet); err != nil {
			return err
		}
	}
	if s.Opts.NoCommands {
		if err := s.refuseCommands(); err != nil {
			return err
		}
	}
	if e := s.Mgmt.Host.Existing; e != nil && e.Kubeconfig != "" {
		e.Kubeconfig = s.inRepo(e.Kubeconfig) // later commands may run in another folder
	}
	s.Cluster = s.Deps.Store.Cluster(s.Mgmt.Name)
	if err := s.settleIdentity(); err != nil {
		return err
	}
	if s.Stranger != nil {
		return nil //nolint:nilerr // what is in that folder is not ours to look at
	}
	s.reachAsConnected()
	return s.openBundle(ctx)
}

// ReachHost finds the host that carries the management cluster. If that is a workload cluster, ReachHost first asks its parent for the
// kubeconfig.
func (s *Session) ReachHost(ctx context.Context) error {
	if s.Mgmt.Parent != "" && s.Stranger == nil && !s.Connected {
		if err := s.askAbove(ctx); err != nil {
			return err
		}
	}
	s.FindHost(ctx)
	return nil
}

// FindHost finds the host that carries the management cluster, from fleet.yaml and from this machine's record.
func (s *Session) FindHost(ctx context.Context) {
	if s.Stranger != nil {
		return // what is in that folder, and the host that it leads to, are not ours to look at
	}
	if s.Host, s.HostErr = hosts.New(ctx, s.Mgmt.Name, s.Mgmt.Host, s.Cluster, hosts.ImageDir(s.Deps.CacheDir)); s.HostErr != nil {
		s.Host = nil // and not a nil of some kind of host, which is no nil
	}
}

// Close closes everything that the session has opened.
func (s *Session) Close() {
	if s.Bundle != nil {
		_ = s.Bundle.Close() // it was only read
	}
}

// fetchExisting clones the remote's fleet repo into a folder that is empty or does not exist.
func (s *Session) fetchExisting(ctx context.Context) error {
	if s.Opts.GitURL == "" || !EmptyDir(s.Opts.Dir) {
		return nil
	}
	auth, err := s.cloneAuth()
	if err != nil {
		return err
	}
	branch := s.Opts.Branch
	if branch == "" {
		branch = v1alpha1.DefaultBranch
	}
	remote, err := gitrepo.Probe(ctx, s.Opts.GitURL, auth, branch)
	if errors.Is(err, gitrepo.ErrNotFound) && s.Opts.CreateRepo {
		return nil
	}
	if err != nil {
		return s.ExplainRemote(s.Opts.GitURL, err)
	}
	if !remote.BranchExists {
		return nil
	}
	step := s.Deps.Report.Start("clone the fleet repo")
	if _, err := gitrepo.Clone(ctx, s.Opts.GitURL, auth, branch, s.Opts.Dir); err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	return nil
}

// loadFleet reads fleet.yaml, or makes a new fleet from the options.
func (s *Session) loadFleet(ctx context.Context) error {
	path := filepath.Join(s.Opts.Dir, v1alpha1.FileName)
	raw, err := within.Start(s.Opts.Dir, v1alpha1.FileName, within.MostNamed) // Decode refuses what is half as long
	if errors.Is(err, fs.ErrNotExist) {
		s.NewFleet = true
		raw, err = s.newFleetFile(ctx)
	}
	if err != nil {
		return diag.Wrap("read the fleet", err, "")
	}
	s.FleetFile = raw
	if s.NewFleet {
		path = "new " + v1alpha1.FileName // there is no such file to look into yet
	}
	if s.Fleet, err = s.decodeFleet(ctx, path, raw); err != nil && s.NewFleet {
		return &diag.Error{Op: "make a fleet of the flags", Err: err, Code: diag.ExitUsage}
	}
	if err != nil {
		return err
	}
	if err := s.refuseIdle(); err != nil {
		return err
	}
	if err := s.readCA(); err != nil {
		return err
	}
	if s.knownHosts, err = s.givenKnownHosts(); err != nil {
		return err
	}
	if s.NewFleet {
		return nil
	}
	return s.contradictions()
}

// decodeFleet reads a fleet.yaml, fills in the defaults, and returns everything that is wrong with it.
func (s *Session) decodeFleet(ctx context.Context, path string, raw []byte) (*v1alpha1.Fleet, error) {
	fleet, err := v1alpha1.Decode(path, raw)
	if err != nil {
		return nil, err
	}
	s.settleHostTypes(ctx, fleet)
	v1alpha1.SetDefaults(fleet, Defaults())
	return fleet, v1alpha1.Validate(fleet).Err()
}

// contradictions refuses flags that contradict fleet.yaml. fleet.yaml decides, and to ignore a flag silently would mislead.
func (s *Session) contradictions() error {
	var wrong, add []string
	differ := func(flag, given, declared string) {
		if given != "" && given != declared {
			wrong = append(wrong, fmt.Sprintf("--%s is %q, fleet.yaml has %q", flag, given, declared))
		}
	}
	differ("fleet", s.Opts.Fleet, s.Fleet.Metadata.Name)
	differ("git-url", s.Opts.GitURL, s.Fleet.Spec.Git.URL)
	differ("git-branch", s.Opts.Branch, s.Fleet.Spec.Git.Branch)
	if forge := s.Fleet.Spec.Git.ForgeType(); forge != "" {
		differ("forge", string(s.Opts.Forge), string(forge))
	}
	// For an ephemeral cluster the flag says what to bootstrap.
	if name := s.Opts.Environment; name != "" && !s.Opts.Ephemeral && !slices.Contains(s.Fleet.EnvironmentNames(), name) {
		wrong = append(wrong, fmt.Sprintf("--environment %s is not among the environments in fleet.yaml (%s)", name,
			strings.Join(s.Fleet.EnvironmentNames(), ", ")))
		add = append(add, "`"+diag.ShellCommand("fleetctl", "environment", "add", name, "--commit")+"`")
	}
	if m, _, err := chosen(s.Fleet, s.Opts.Cluster); err == nil {
		// fleet.yaml leaves it to the user.
		if m.Host.Type == v1alpha1.HostExisting && m.Host.Existing == nil && s.Opts.Context != "" {
			m.Host.Existing = &v1alpha1.ExistingHost{Kubeconfig: s.Opts.Kubeconfig, Context: s.Opts.Context}
		}
		differ("kubernetes-version", s.Opts.KubernetesVersion, m.KubernetesVersion)
		differ("host", s.Opts.HostType, string(m.Host.Type))
		image, hostContext, kubeconfig := "", "", ""
		if m.Host.Kind != nil {
			image = m.Host.Kind.Image
		}
		if e := m.Host.Existing; e != nil && e.Kubeconfig != "" {
			kubeconfig = s.inRepo(e.Kubeconfig)
		}
		if e := m.Host.Existing; e != nil {
			hostContext = e.Context
		}
		differ("node-image", s.Opts.NodeImage, image)
		differ("host-context", s.Opts.Context, hostContext)
		differ("host-kubeconfig", s.Opts.Kubeconfig, kubeconfig)
		for _, p := range s.Opts.Providers {
			if !declares(m, p) {
				wrong = append(wrong, fmt.Sprintf("--provider %s is not among the providers of %s in fleet.yaml", p, m.Name))
				if slices.Contains(s.Fleet.ManagementClusterNames(), m.Name) { // a standby has the providers of another one
					add = append(add, "`"+diag.ShellCommand("fleetctl", "provider", "add", p.String(), "--management", m.Name, "--commit")+"`")
				}
			}
		}
	}
	switch len(wrong) {
	case 0:
		return nil
	case len(add):
		return diag.Usage("declare it first: "+strings.Join(add, ", ")+"; or leave the flag out", "%s", strings.Join(wrong, "; "))
	}
	return diag.Usage("edit fleet.yaml, or leave the flag out", "%s", strings.Join(wrong, "; "))
}

// String returns the provider as --provider takes it.
func (p Provider) String() string {
	if p.Version == "" {
		return p.Name
	}
	return p.Name + ":" + p.Version
}

func declares(m *v1alpha1.ManagementCluster, p Provider) bool {
	for _, have := range m.Providers {
		if have.Name == p.Name && (p.Version == "" || p.Version == have.Version) {
			return true
		}
	}
	return false
}

// openBundle opens the offline bundle, if there is one, and unpacks its manifests.
func (s *Session) openBundle(ctx context.Context) (err error) {
	if s.Opts.Bundle == "" {
		return nil
	}
	if s.Bundle, err = bundle.Open(ctx, s.Opts.Bundle, bundle.WithCache(filepath.Join(s.Deps.CacheDir, "bundles"))); err != nil {
		return err
	}
	s.ManifestDir = s.Cluster.Path("manifests")
	return nil
}

// Record returns the record of this management cluster in the state folder.
func (s *Session) Record() state.Record {
	r := state.Record{
		Name: s.Mgmt.Name, Fleet: s.Fleet.Metadata.Name, FleetID: s.Identity(), Repo: s.Opts.Dir, GitURL: s.Fleet.Spec.Git.URL,
		HostType: string(s.Mgmt.Host.Type), Ephemeral: s.Opts.Ephemeral, MergedInto: s.Opts.MergeKubeconfig,
	}
	if e := s.Mgmt.Host.Existing; e != nil {
		r.Context, r.KubeconfigSource = e.Context, e.Kubeconfig
	}
	r.Connected = s.Connected
	if earlier, err := s.Cluster.Load(); err == nil && r.MergedInto == "" {
		r.MergedInto = earlier.MergedInto // teardown has to find our entries there, whichever run made them
	}
	return r
}

// EmptyDir tells whether a folder is empty or does not exist.
func EmptyDir(dir string) bool {
	entries, err := os.ReadDir(dir)
	return (err == nil && len(entries) == 0) || errors.Is(err, fs.ErrNotExist)
}

// inRepo makes a path absolute that is relative to fleet.yaml.
func (s *Session) inRepo(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Opts.Dir, path)
}
