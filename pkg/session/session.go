// Package session is what a command about a management cluster knows before it does anything: the fleet as fleet.yaml and the options
// declare it, the management cluster and its host, whose they are, and which credentials, keys and snapshots belong to them. It makes no
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

// Session is one such command's. Once it is open nothing changes it but for its identity, so steps that run side by side
// read it as they like. What they make for each other are values of their run.
type Session struct {
	Deps management.Deps
	Opts Options

	Fleet     *v1alpha1.Fleet
	Mgmt      *v1alpha1.ManagementCluster
	FleetFile []byte // fleet.yaml as it is, or as it would be written of the options alone
	NewFleet  bool   // there was no fleet.yaml

	// StandbyOf is the management cluster that this one is a standby of; "" for one that is none.
	StandbyOf string
	// Waiting is the UID of the standby that the command is about, as long as that has not taken over: see OwnNote.
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

	// What is found out when it is first asked for.
	onMachine Lookup[*engine.Engine]
	resolved  Lookup[*variables.Resolved]
	deployKey Lookup[*gitrepo.DeployKey]
}

// Open is Read with a way to the host that carries the management cluster.
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

// OpenAlone is Open for a command that nobody else may disturb: the management cluster is this fleet's, and locked for the command
// until done.
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

// Read reads what is there (fleet.yaml, the bundle's index, the state folder) and settles what is wanted. It calls no cluster, and
// apart from cloning an existing fleet repo into an empty folder it changes nothing.
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

// ReachHost finds what carries the management cluster. Where that is a workload cluster of another one, the way to it is asked for there
// first.
func (s *Session) ReachHost(ctx context.Context) error {
	if s.Mgmt.Parent != "" && s.Stranger == nil && !s.Connected {
		if err := s.askAbove(ctx); err != nil {
			return err
		}
	}
	s.FindHost(ctx)
	return nil
}

// FindHost finds what carries the management cluster, as it is declared and as this machine remembers it.
func (s *Session) FindHost(ctx context.Context) {
	if s.Stranger != nil {
		return // what is in that folder, and the host that it leads to, are not ours to look at
	}
	if s.Host, s.HostErr = hosts.New(ctx, s.Mgmt.Name, s.Mgmt.Host, s.Cluster, hosts.ImageDir(s.Deps.CacheDir)); s.HostErr != nil {
		s.Host = nil // and not a nil of some kind of host, which is no nil
	}
}

// Close ends what the session has opened.
func (s *Session) Close() {
	if s.Bundle != nil {
		_ = s.Bundle.Close() // it was only read
	}
}

// fetchExisting clones the remote's fleet repo into a folder that is empty or missing.
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

// loadFleet reads fleet.yaml, or makes up a new one from the options.
func (s *Session) loadFleet(ctx context.Context) error {
	path := filepath.Join(s.Opts.Dir, v1alpha1.FileName)
	raw, err := within.ReadFile(s.Opts.Dir, v1alpha1.FileName, within.MostNamed) // Decode refuses what is half as long
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

// decodeFleet reads a fleet.yaml, fills in what it leaves out, and returns all that is wrong with it.
func (s *Session) decodeFleet(ctx context.Context, path string, raw []byte) (*v1alpha1.Fleet, error) {
	fleet, err := v1alpha1.Decode(path, raw)
	if err != nil {
		return nil, err
	}
	s.settleHostTypes(ctx, fleet)
	v1alpha1.SetDefaults(fleet, Defaults())
	return fleet, v1alpha1.Validate(fleet).Err()
}

// contradictions refuses flags that say other than fleet.yaml: fleet.yaml is what holds, and silently dropping a flag would mislead.
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
	if m, _, err := chosen(s.Fleet, s.Opts.Cluster); err == nil {
		// fleet.yaml leaves it to who runs the command.
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

// String is how --provider is written.
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

// openBundle opens the offline bundle and unpacks its manifests, where there is one.
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

// Record is what the state folder remembers of this management cluster.
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

// EmptyDir tells whether a folder has nothing in it, or does not exist.
func EmptyDir(dir string) bool {
	entries, err := os.ReadDir(dir)
	return (err == nil && len(entries) == 0) || errors.Is(err, fs.ErrNotExist)
}

// inRepo makes a path that is relative to fleet.yaml absolute.
func (s *Session) inRepo(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Opts.Dir, path)
}
