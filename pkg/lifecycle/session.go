package lifecycle

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

// session is what a command knows before it does anything: the fleet as it is declared, the management cluster that the command is about,
// whose both are, and what carries that cluster. Once it is open nothing changes it but for its identity, so steps that run side by side
// read it as they like. What they make for each other are values of the run: see initRun.
type session struct {
	deps management.Deps
	opts InitOptions

	fleet     *v1alpha1.Fleet
	mgmt      *v1alpha1.ManagementCluster
	fleetFile []byte // fleet.yaml as it is, or as it would be written of the options alone
	newFleet  bool   // there was no fleet.yaml

	// standbyOf is the management cluster that this one is a standby of; "" for one that is none.
	standbyOf string
	// waiting is the UID of the standby that the command is about, as long as that has not taken over: see ownNote.
	waiting string

	self        *ownership.Repo
	id          currentID // of the fleet; see identity
	provisional bool      // it is not in the repo yet
	stranger    error     // why the record of this management cluster is not ours to use
	connected   bool      // another machine made the management cluster: this one has a way to it, and none to its host

	cluster state.Cluster
	host    host.Host
	hostErr error          // why there is no host: no engine answers, or the parent does not. Preflight tells it together with all else.
	bundle  *bundle.Bundle // nil without --bundle
	// manifestDir is the folder that the bundle's manifests are unpacked to; "" without a bundle.
	manifestDir string

	ca         []byte // certificate authorities of the remote
	knownHosts string // lines of --ssh-known-hosts

	// What is found out when it is first asked for.
	onMachine lookup[*engine.Engine]
	resolved  lookup[*variables.Resolved]
	deployKey lookup[*gitrepo.DeployKey]
}

// openSession is readSession with a way to the host that carries the management cluster.
func openSession(ctx context.Context, deps management.Deps, opts InitOptions) (*session, error) {
	s, err := readSession(ctx, deps, opts)
	if err != nil {
		return nil, err
	}
	if err := s.reachHost(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openAlone is openSession for a command that nobody else may disturb: the management cluster is this fleet's, and locked for the command
// until done.
func openAlone(ctx context.Context, deps management.Deps, opts InitOptions, command string) (s *session, done func(), err error) {
	if s, err = openSession(ctx, deps, opts); err != nil {
		return nil, nil, steps.TimedOut(ctx, err)
	}
	if s.stranger != nil {
		s.close()
		return nil, nil, s.stranger
	}
	unlock, err := s.cluster.Lock(command)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, func() { unlock(); s.close() }, nil
}

// readSession reads what is there (fleet.yaml, the bundle's index, the state folder) and settles what is wanted. It calls no cluster, and
// apart from cloning an existing fleet repo into an empty folder it changes nothing.
func readSession(ctx context.Context, deps management.Deps, opts InitOptions) (*session, error) {
	s := &session{deps: deps, opts: opts}
	if err := s.settle(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) settle(ctx context.Context) (err error) {
	if err := s.fetchExisting(ctx); err != nil {
		return err
	}
	if err := s.loadFleet(ctx); err != nil {
		return err
	}
	if s.mgmt, s.standbyOf, err = chosen(s.fleet, s.opts.Cluster); err != nil {
		return err
	}
	if own := s.mgmt.Repository; own != nil {
		return diag.Usage("run it in a clone of that; `fleetctl bootstrap --management "+s.mgmt.Name+" --stand-alone` here makes it",
			"management cluster %s has a fleet repo of its own, %s", s.mgmt.Name, own.Git.URL)
	}
	if s.opts.Sources != nil {
		if err := s.opts.Sources.Check(s.fleet); err != nil {
			return err
		}
	}
	if s.opts.NoCommands {
		if err := s.refuseCommands(); err != nil {
			return err
		}
	}
	if e := s.mgmt.Host.Existing; e != nil && e.Kubeconfig != "" {
		e.Kubeconfig = s.inRepo(e.Kubeconfig) // later commands may run in another folder
	}
	s.cluster = s.deps.Store.Cluster(s.mgmt.Name)
	if err := s.settleIdentity(); err != nil {
		return err
	}
	if s.stranger != nil {
		return nil //nolint:nilerr // what is in that folder is not ours to look at
	}
	s.reachAsConnected()
	return s.openBundle(ctx)
}

// reachHost finds what carries the management cluster. Where that is a workload cluster of another one, the way to it is asked for there
// first.
func (s *session) reachHost(ctx context.Context) error {
	if s.mgmt.Parent != "" && s.stranger == nil && !s.connected {
		if err := s.askAbove(ctx); err != nil {
			return err
		}
	}
	s.findHost(ctx)
	return nil
}

// findHost finds what carries the management cluster, as it is declared and as this machine remembers it.
func (s *session) findHost(ctx context.Context) {
	if s.stranger != nil {
		return // what is in that folder, and the host that it leads to, are not ours to look at
	}
	if s.host, s.hostErr = hosts.New(ctx, s.mgmt.Name, s.mgmt.Host, s.cluster, hosts.ImageDir(s.deps.CacheDir)); s.hostErr != nil {
		s.host = nil // and not a nil of some kind of host, which is no nil
	}
}

func (s *session) close() {
	if s.bundle != nil {
		_ = s.bundle.Close() // it was only read
	}
}

// fetchExisting clones the remote's fleet repo into a folder that is empty or missing.
func (s *session) fetchExisting(ctx context.Context) error {
	if s.opts.GitURL == "" || !emptyDir(s.opts.Dir) {
		return nil
	}
	auth, err := s.cloneAuth()
	if err != nil {
		return err
	}
	branch := s.opts.Branch
	if branch == "" {
		branch = v1alpha1.DefaultBranch
	}
	remote, err := gitrepo.Probe(ctx, s.opts.GitURL, auth, branch)
	if err != nil {
		return s.explainRemote(s.opts.GitURL, err)
	}
	if !remote.BranchExists {
		return nil
	}
	step := s.deps.Report.Start("clone the fleet repo")
	if _, err := gitrepo.Clone(ctx, s.opts.GitURL, auth, branch, s.opts.Dir); err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	return nil
}

// loadFleet reads fleet.yaml, or makes up a new one from the options.
func (s *session) loadFleet(ctx context.Context) error {
	path := filepath.Join(s.opts.Dir, v1alpha1.FileName)
	raw, err := within.ReadFile(s.opts.Dir, v1alpha1.FileName, maxNamed) // Decode refuses what is half as long
	if errors.Is(err, fs.ErrNotExist) {
		s.newFleet = true
		raw, err = s.newFleetFile(ctx)
	}
	if err != nil {
		return diag.Wrap("read the fleet", err, "")
	}
	s.fleetFile = raw
	if s.newFleet {
		path = "new " + v1alpha1.FileName // there is no such file to look into yet
	}
	if s.fleet, err = s.decodeFleet(ctx, path, raw); err != nil && s.newFleet {
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
	if s.newFleet {
		return nil
	}
	return s.contradictions()
}

// decodeFleet reads a fleet.yaml, fills in what it leaves out, and returns all that is wrong with it.
func (s *session) decodeFleet(ctx context.Context, path string, raw []byte) (*v1alpha1.Fleet, error) {
	fleet, err := v1alpha1.Decode(path, raw)
	if err != nil {
		return nil, err
	}
	s.settleHostTypes(ctx, fleet)
	v1alpha1.SetDefaults(fleet, defaults())
	return fleet, v1alpha1.Validate(fleet).Err()
}

// contradictions refuses flags that say other than fleet.yaml: fleet.yaml is what holds, and silently dropping a flag would mislead.
func (s *session) contradictions() error {
	var wrong, add []string
	differ := func(flag, given, declared string) {
		if given != "" && given != declared {
			wrong = append(wrong, fmt.Sprintf("--%s is %q, fleet.yaml has %q", flag, given, declared))
		}
	}
	differ("fleet", s.opts.Fleet, s.fleet.Metadata.Name)
	differ("git-url", s.opts.GitURL, s.fleet.Spec.Git.URL)
	differ("git-branch", s.opts.Branch, s.fleet.Spec.Git.Branch)
	if m, _, err := chosen(s.fleet, s.opts.Cluster); err == nil {
		if m.Host.Type == v1alpha1.HostExisting && m.Host.Existing == nil && s.opts.Context != "" { // fleet.yaml leaves it to who runs the command
			m.Host.Existing = &v1alpha1.ExistingHost{Kubeconfig: s.opts.Kubeconfig, Context: s.opts.Context}
		}
		differ("kubernetes-version", s.opts.KubernetesVersion, m.KubernetesVersion)
		differ("host", s.opts.HostType, string(m.Host.Type))
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
		differ("node-image", s.opts.NodeImage, image)
		differ("host-context", s.opts.Context, hostContext)
		differ("host-kubeconfig", s.opts.Kubeconfig, kubeconfig)
		for _, p := range s.opts.Providers {
			if !declares(m, p) {
				wrong = append(wrong, fmt.Sprintf("--provider %s is not among the providers of %s in fleet.yaml", p, m.Name))
				if slices.Contains(s.fleet.ManagementClusterNames(), m.Name) { // a standby has the providers of another one
					add = append(add, fmt.Sprintf("`fleetctl provider add %s --management %s --commit`", p, m.Name))
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
func (s *session) openBundle(ctx context.Context) (err error) {
	if s.opts.Bundle == "" {
		return nil
	}
	if s.bundle, err = bundle.Open(ctx, s.opts.Bundle, bundle.WithCache(filepath.Join(s.deps.CacheDir, "bundles"))); err != nil {
		return err
	}
	s.manifestDir = s.cluster.Path("manifests")
	return nil
}

// record is what the state folder remembers of this management cluster.
func (s *session) record() state.Record {
	r := state.Record{
		Name: s.mgmt.Name, Fleet: s.fleet.Metadata.Name, FleetID: s.identity(), Repo: s.opts.Dir, GitURL: s.fleet.Spec.Git.URL,
		HostType: string(s.mgmt.Host.Type), Ephemeral: s.opts.Ephemeral, MergedInto: s.opts.MergeKubeconfig,
	}
	if e := s.mgmt.Host.Existing; e != nil {
		r.Context, r.KubeconfigSource = e.Context, e.Kubeconfig
	}
	r.Connected = s.connected
	if earlier, err := s.cluster.Load(); err == nil && r.MergedInto == "" {
		r.MergedInto = earlier.MergedInto // teardown has to find our entries there, whichever run made them
	}
	return r
}

func emptyDir(dir string) bool {
	entries, err := os.ReadDir(dir)
	return (err == nil && len(entries) == 0) || errors.Is(err, fs.ErrNotExist)
}
