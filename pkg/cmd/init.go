package cmd

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// initOptions are the flags of init; bootstrap has them too.
type initOptions struct {
	session.Options
	providers []string
	tokenFile string
	// fluxTokenFile has Flux's own token for the fleet repo.
	fluxTokenFile string
	merge         bool
	dryRun        bool
	scaffold      bool
	manifestDir   string
	forge         string
}

func newInitCmd(f *factory) *cobra.Command {
	o := &initOptions{}
	c := &cobra.Command{
		Use:   "init",
		Short: "Make a management cluster that follows the fleet repo",
		Long: `Make a management cluster, install Cluster API, the providers and Flux on it, and point Flux at the fleet repo. The management
cluster runs on one of three kinds of host: a kind cluster on this machine, an embedded host, which needs no container engine, or an
existing cluster.

In an empty folder, init first writes the fleet repo. In an existing fleet repo it adds only missing files. Without --git-url, the folder
itself is the fleet repo. fleetctl serves the folder read-only to Flux from this machine, and a commit in the folder changes the fleet.

The fleet repo gets a chart for each flavour of cluster that the chosen providers can make:
` + scaffold.FlavoursText() + `.

Run init again at any time: it looks at the current state and does only the missing steps.

On a machine that knows nothing of the management cluster, init refuses if the fleet repo or a snapshot says that there was one before,
because two would make the same clusters. "fleetctl connect" gives this machine the way to a management cluster that lives. If it is gone
with all that it made, and there is no snapshot of it, --source-is-gone makes it again.

--scaffold only writes and commits the fleet repo, for a first pull request. It needs no management cluster, no network and no bundle. With
--bundle, it writes the versions of the bundle into fleet.yaml. It leaves out Flux's own manifests and fleet.lock, because a later init adds
them when it makes the management cluster. It keeps the age key of the fleet's secrets in the state folder.`,
		Example: `  # From an empty folder, with nothing but this machine
  fleetctl init --provider docker

  # Two clouds, a repository on GitHub; the token comes from the environment
  FLEETCTL_GIT_TOKEN=… fleetctl init --git-url https://github.com/acme/fleet --provider aws --provider azure:v1.23.0

  # Without any network
  fleetctl init --provider docker --bundle fleet-bundle.tar.zst

  # The fleet repo first, on a separate branch
  git switch --create fleet && fleetctl init --scaffold --provider aws && git push --set-upstream origin fleet`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runInit),
	}
	o.addFlags(f, c)
	o.addDryRun(c)
	c.Flags().BoolVar(&o.FormerIsGone, "source-is-gone", false,
		"the management cluster that the fleet repo had before is gone, and all that it made: make it again from Git")
	c.Flags().StringVar(&o.forge, "forge", "", "forge of the remote, for --create-repo and pull requests: "+v1alpha1.ForgeNames(" or ")+
		" (default: spec.git.forge, or by the host's name)")
	completeFlag(c, "forge", completeForges)
	c.Flags().BoolVar(&o.scaffold, "scaffold", false, "write and commit the fleet repo alone, and make no management cluster")
	return c
}

// addFlags defines the flags that init and bootstrap share.
func (o *initOptions) addFlags(f *factory, c *cobra.Command) {
	o.addFleetFlags(f, c)
	o.addRunFlags(c)
	o.addHostType(c)
	fs := c.Flags()
	fs.StringVar(&o.Fleet, "fleet", "", "name of a new fleet (default: the folder's name)")
	fs.StringVar(&o.Kubeconfig, "host-kubeconfig", "", "kubeconfig of an existing host")
	fs.StringVar(&o.Context, "host-context", "", "context of an existing host")
	fs.StringVar(&o.Environment, "environment", "", "first environment of a new fleet repo (default: dev)")
	fs.StringVar(&o.GitURL, "git-url", "", "remote of the fleet repo, https or ssh (default: the folder's own remote, or none at all)")
	fs.StringVar(&o.Branch, "git-branch", "", "branch that holds the fleet (default: main)")
	fs.BoolVar(&o.CreateRepo, "create-repo", false,
		"make the repository at the remote, private and empty, if it does not exist; the token needs the right to make repositories")
	fs.StringVar(&o.Git.CAFile, "git-ca-file", "", "certificate authorities of an https remote, a PEM file inside the fleet repo")
	fs.BoolVar(&o.TakeOverFlux, "take-over-flux", false, "point a Flux that follows another source at this fleet repo; its objects stay")
	fs.BoolVar(&o.merge, "merge-kubeconfig", false, "add a context for the management cluster to your own kubeconfig")
}

// addHostType defines the flag for the type of a new management cluster's host.
func (o *initOptions) addHostType(c *cobra.Command) {
	c.Flags().StringVar(&o.HostType, "host", "", "kind of host of the management cluster: "+hostNames()+
		" (default: kind where a container engine answers, else embedded)")
	completeFlag(c, "host", cobra.FixedCompletions(hostTypes(), cobra.ShellCompDirectiveNoFileComp))
}

// hostTypes are the types of hosts for --host. The type workload is missing, because it follows from a parent in fleet.yaml.
func hostTypes() []string {
	var names []string
	for _, t := range v1alpha1.HostTypes() {
		if t != v1alpha1.HostWorkload {
			names = append(names, string(t))
		}
	}
	return names
}

func hostNames() string {
	names := hostTypes()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// addRunFlags defines the flags of every run that connects Flux or commits to the fleet repo, even on an existing management cluster.
func (o *initOptions) addRunFlags(c *cobra.Command) {
	o.addAccessFlags(c)
	o.addBundleFlag(c)
	fs := c.Flags()
	fs.StringSliceVar(&o.SkipPreflight, "skip-preflight", nil, "preflight checks that may fail")
	fs.StringVar(&o.fluxTokenFile, "flux-token-file", "",
		"file with a read-only token of an https remote, for Flux on all clusters (default: the environment variable "+
			"FLEETCTL_FLUX_TOKEN)")
	fs.StringVar(&o.FluxUsername, "flux-username", "", "user name that goes with the token for Flux (default: the value of --git-username)")
	fs.BoolVar(&o.NoVerify, "no-verify", false,
		"skip the Git hooks that could refuse the commit of the fleet repo: pre-commit, commit-msg and pre-push")
}

// addAccessFlags defines the flags of every run that reads the fleet's remote and secrets.
func (o *initOptions) addAccessFlags(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&o.Git.Username, "git-username", "", "user name that goes with the token (default: git)")
	fs.StringVar(&o.tokenFile, "git-token-file", "",
		"file with the token of an https remote (default: the environment variable FLEETCTL_GIT_TOKEN)")
	fs.StringVar(&o.Git.SSHKeyFile, "ssh-key-file", "", "private key for an ssh remote (default: the agent)")
	fs.StringVar(&o.Git.KnownHostsFile, "ssh-known-hosts", "",
		"known_hosts file that pins the host keys of an ssh remote (default: the user's)")
	fs.StringVar(&o.AgeKeyFile, "age-key-file", "",
		"file with the private age key of a fleet repo that has one (default: SOPS_AGE_KEY_FILE, SOPS_AGE_KEY, the state folder's, or a new one)")
}

// addBundleFlag defines the flag of every run that installs something.
func (o *initOptions) addBundleFlag(c *cobra.Command) {
	c.Flags().StringVar(&o.Bundle, "bundle", "", "offline bundle, a folder or a .tar.zst: no network is needed")
}

// addDryRun defines the flags of a run that only says what it would do.
func (o *initOptions) addDryRun(c *cobra.Command) {
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the steps and write the manifests that would be applied; change nothing else")
	c.Flags().StringVar(&o.manifestDir, "manifest-dir", "fleetctl-manifests", "folder for the manifests of --dry-run")
}

// addFleetFlags defines the flags for the versions and providers of the management cluster. bundle create has only these.
func (o *initOptions) addFleetFlags(f *factory, c *cobra.Command) {
	f.addManagement(c)
	fs := c.Flags()
	fs.StringSliceVar(&o.providers, "provider", nil, "infrastructure provider, NAME or NAME:VERSION; several times, or several with commas")
	fs.StringVar(&o.KubernetesVersion, "kubernetes-version", "", "Kubernetes version of a new management cluster")
	fs.StringVar(&o.NodeImage, "node-image", "", "node image of a new kind host")
	fs.DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
}

// complete converts the flags to the workflow's options.
func (o *initOptions) complete(f *factory, _ ...string) (err error) {
	if o.Dir, err = f.repoDir(); err != nil {
		return err
	}
	o.Cluster = f.flags.management
	o.RemoteFlags = f.typedAmong(session.RemoteFlags())
	if o.Providers, err = parseProviders(o.providers); err != nil {
		return err
	}
	if err := f.checkProviders(o.Providers); err != nil {
		return err
	}
	if o.Git.Token, err = readToken(o.tokenFile); err != nil {
		return err
	}
	if o.FluxToken, err = readTokenFrom(o.fluxTokenFile, "flux-token-file", fluxTokenVariable); err != nil {
		return err
	}
	o.SecretFiles = []string{o.tokenFile, o.fluxTokenFile}
	if o.Kubeconfig != "" {
		if o.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil {
			return diag.Wrap("find the kubeconfig "+o.Kubeconfig, err, "")
		}
	}
	o.Forge = v1alpha1.ForgeType(o.forge)
	if o.forge != "" && !slices.Contains(v1alpha1.ForgeTypes(), o.Forge) {
		return diag.Usage("one of "+v1alpha1.ForgeNames(", "), "unknown forge %q", o.forge)
	}
	if o.merge {
		o.MergeKubeconfig = userKubeconfig()
	}
	if o.Timeout < 0 {
		return diag.Usage("give a duration such as 20m", "--timeout %s is negative", o.Timeout)
	}
	if o.scaffold && o.dryRun {
		return diag.Usage("leave one of them out", "--scaffold writes the fleet repo, and --dry-run writes no part of it")
	}
	return nil
}

// checkProviders returns an error for a provider that nobody knows, in a fleet that would otherwise ask for the management cluster first.
// Everything else is left to the command: it may find the provider in a bundle, and it makes or fetches a missing fleet repo.
func (f *factory) checkProviders(given []session.Provider) error {
	if len(given) == 0 || f.flags.management != "" {
		return nil
	}
	repo, err := f.fleetRepo()
	if err != nil {
		return nil //nolint:nilerr // the command meets the same error
	}
	if _, err := repo.Fleet.ManagementCluster(""); err == nil {
		return nil
	}
	wanted := make([]v1alpha1.Provider, 0, len(given))
	for _, p := range given {
		wanted = append(wanted, v1alpha1.Provider{Name: p.Name, Version: p.Version})
	}
	return components.CheckFor(repo, wanted...)
}

// parseProviders parses values of the form NAME or NAME:VERSION.
func parseProviders(given []string) ([]session.Provider, error) {
	var out []session.Provider
	for _, g := range given {
		name, version, pinned := strings.Cut(g, ":")
		if name == "" || (pinned && !strings.HasPrefix(version, "v")) {
			return nil, diag.Usage("write aws, or aws:v2.13.0", "provider %q is not NAME or NAME:VERSION", g)
		}
		if slices.ContainsFunc(out, func(other session.Provider) bool { return other.Name == name }) {
			return nil, diag.Usage("give each provider once", "provider %s is given twice", name)
		}
		out = append(out, session.Provider{Name: name, Version: version})
	}
	return out, nil
}

func runInit(ctx context.Context, f *factory, o *initOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	if o.scaffold {
		result, err := lifecycle.Scaffold(ctx, deps, o.Options)
		if err != nil {
			return err
		}
		f.closeReporter()
		return f.show(views.Scaffold(result))
	}
	if o.dryRun {
		plan, err := lifecycle.DryRun(ctx, deps, o.Options, o.manifestDir)
		if err != nil {
			return err
		}
		f.closeReporter()
		return f.show(views.InitPlan(plan))
	}
	run := lifecycle.Init
	if o.UpgradeOnly {
		run = lifecycle.Upgrade
	}
	result, err := run(ctx, deps, o.Options)
	if err != nil {
		return err
	}
	f.closeReporter()
	result.Steps = f.report().Events()
	return f.show(views.Init(result))
}
