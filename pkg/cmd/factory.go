package cmd

import (
	"cmp"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/adrg/xdg"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/config"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// factory makes the dependencies that commands share, each when a command first needs it. So `fleetctl version` opens no file except for
// the configuration, and no connection.
type factory struct {
	streams ui.Streams
	// args is the command line.
	args []string
	// root is the tree of commands.
	root *cobra.Command
	// command is the command that runs.
	command *cobra.Command
	// about names the management clusters that the result or the error is about. Hints use them if the command line has no --management.
	about []string
	// counted is what severalManagementClusters found last.
	counted atomic.Pointer[managementCount]
	flags   globalFlags
	// format is flags.output, parsed.
	format   ui.Format
	settings *config.Settings
	reporter *ui.Reporter
	// grace, if not 0, replaces the time that an interrupted command may take to end by itself.
	grace atomic.Int64
	// completed, if set, gets a command's completed options, and the command does not run. Tests of parsing set it.
	completed func(o any)
}

type globalFlags struct {
	repo, management, output, stateDir, cacheDir, configFile string
	// kubeconfig and context of the management cluster, for commands with these flags.
	kubeconfig, context     string
	noColor, quiet, verbose bool
}

// nameOne tells whether the flags name one management cluster.
func (f *globalFlags) nameOne() bool {
	return f.management != "" || f.kubeconfig != "" || f.context != ""
}

// cleanUpTime is the grace of a command that, when interrupted, removes what it has made or restores what it has
// changed. On a busy machine this takes longer than the usual grace. The user can interrupt a second time to end at
// once.
const cleanUpTime = 2 * time.Minute

// setGrace sets how long a command may take to end by itself when it is interrupted.
func (f *factory) setGrace(d time.Duration) { f.grace.Store(int64(d)) }

func newFactory(streams ui.Streams) *factory {
	f := &factory{format: ui.Human}
	f.streams = streams.Advising(f.advise)
	return f
}

func (f *factory) addGlobalFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&f.flags.repo, "repo", "C", ".", "folder of the fleet repo")
	fs.StringVarP(&f.flags.output, "output", "o", string(ui.Human), "output format: human, json or yaml; for lists also wide and name")
	fs.StringVar(&f.flags.stateDir, "state-dir", "",
		"private folder for what fleetctl knows about its management clusters (default: fleetctl in the user's state folder)")
	fs.StringVar(&f.flags.cacheDir, "cache-dir", "",
		"folder for what can be fetched or made again (default: fleetctl in the user's cache folder)")
	fs.StringVar(&f.flags.configFile, "config", "", "configuration file (default: fleetctl/config.yaml in the user's configuration folder)")
	fs.BoolVar(&f.flags.noColor, "no-color", false, "print without colours and animation")
	fs.BoolVarP(&f.flags.quiet, "quiet", "q", false, "print no progress")
	fs.BoolVarP(&f.flags.verbose, "verbose", "v", false, "print more: when each step began, what it waited for, and complete differences")
}

// moreFormats is the annotation with the output formats of a command besides those of every command.
const moreFormats = "formats"

// settle applies the environment and the configuration file to the flags that were not given, before any command runs.
func (f *factory) settle(c *cobra.Command) error {
	settings, err := config.Load(c.Flags(), f.flags.configFile)
	if err != nil {
		return err
	}
	if err := settings.Apply(c.Flags()); err != nil {
		return err
	}
	f.settings = settings
	if err := f.settleFormat(c); err != nil {
		return err
	}
	if f.flags.quiet && f.flags.verbose {
		f.flags.quiet, f.flags.verbose = settings.Prevails("quiet", "verbose"), settings.Prevails("verbose", "quiet")
		if f.flags.quiet == f.flags.verbose {
			return diag.Usage("leave one of them out", "--quiet and --verbose are opposites")
		}
	}
	if f.flags.noColor {
		f.streams.OutColor, f.streams.ErrColor, f.streams.ErrSmart = false, false, false
	}
	return nil
}

// settleFormat parses --output. A format from the environment or the configuration file is for many commands. So a command that lacks it,
// because only other commands have it, takes the format for people.
func (f *factory) settleFormat(c *cobra.Command) (err error) {
	f.format, err = ui.ParseFormat(f.flags.output, strings.Fields(c.Annotations[moreFormats])...)
	if err != nil && f.settings.FromOutside("output") && slices.Contains(everyFormat(f.root), f.flags.output) {
		f.format, err = ui.Human, nil
	}
	return err
}

// everyFormat returns the formats that only some commands below c have.
func everyFormat(c *cobra.Command) []string {
	formats := strings.Fields(c.Annotations[moreFormats])
	for _, sub := range c.Commands() {
		formats = append(formats, everyFormat(sub)...)
	}
	return formats
}

// show prints the result of a command.
func (f *factory) show(v views.View) error {
	f.about = aboutOf(v.Data())
	return views.Print(f.streams, f.format, f.flags.verbose, v)
}

// report returns the one Reporter of this run.
func (f *factory) report() *ui.Reporter {
	if f.reporter == nil {
		f.reporter = ui.NewReporter(f.streams, f.flags.quiet).Verbose(f.flags.verbose)
	}
	return f.reporter
}

func (f *factory) closeReporter() {
	if f.reporter != nil {
		f.reporter.Close()
	}
}

func (f *factory) store() state.Store {
	s := state.Store{Dir: cmp.Or(f.flags.stateDir, state.DefaultDir())}
	if f.flags.kubeconfig != "" || f.flags.context != "" {
		s.Given = &state.Given{Name: f.flags.management, Kubeconfig: f.flags.kubeconfig, Context: f.flags.context}
	}
	return s
}

// cacheDir is the cache folder. It is an error if another user may have written to this folder.
func (f *factory) cacheDir() (string, error) {
	dir := cmp.Or(f.flags.cacheDir, filepath.Join(xdg.CacheHome, "fleetctl"))
	return dir, state.CheckCache(dir)
}

// repoDir is the absolute path of --repo.
func (f *factory) repoDir() (string, error) {
	dir, err := filepath.Abs(f.flags.repo)
	return dir, diag.Wrap("find the folder "+f.flags.repo, err, "give --repo an existing folder")
}

// deps makes the dependencies of workflows.
func (f *factory) deps() (management.Deps, error) {
	exe, err := os.Executable()
	if err != nil {
		return management.Deps{}, diag.Wrap("find the fleetctl program", err, "")
	}
	cacheDir, err := f.cacheDir()
	if err != nil {
		return management.Deps{}, err
	}
	deps := management.Deps{
		Report: f.report(), Store: f.store(), CacheDir: cacheDir, Executable: exe, LookupEnv: os.LookupEnv,
	}
	if !f.streams.InTerminal {
		deps.Stdin = f.streams.In
	}
	return deps, nil
}

// target returns the management cluster that the flags name, or the one of the fleet repo in --repo.
func (f *factory) target() (*management.Target, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	return management.Find(f.store(), f.flags.management, dir)
}

// checkManagement returns an error for a --management that nothing knows: a command would otherwise take it for a management cluster that
// is not made yet, or is gone.
func (f *factory) checkManagement() error {
	if f.flags.management == "" {
		return nil
	}
	dir, err := f.repoDir()
	if err != nil {
		return err
	}
	return management.CheckName(f.store(), f.flags.management, dir)
}

// declaredTarget is target for commands that only read. It also returns a management cluster that does not exist yet.
func (f *factory) declaredTarget() (*management.Target, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	return management.FindDeclared(f.store(), f.flags.management, dir)
}

// actedTarget is declaredTarget for commands that change the management cluster or keep a record of it. It refuses a copy of the folder
// that the cluster follows.
func (f *factory) actedTarget() (*management.Target, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	return management.FindDeclaredToAct(f.store(), f.flags.management, dir)
}

// actedTargetOf is actedTarget for a workload cluster. Without --management it is the management cluster for which the fleet repo declares
// the workload cluster. The fleet repo may declare the workload cluster no longer, and then it is as for other commands. name is what the
// management cluster knows the workload cluster by.
func (f *factory) actedTargetOf(given string) (target *management.Target, name string, err error) {
	w, err := f.findWorkload(given)
	if err != nil {
		return nil, "", err
	}
	target, err = w.target(f, management.FindDeclaredToAct)
	return target, w.name, err
}

// completeWorkloadClusters completes the name of a workload cluster: from the fleet repo, and from the management cluster if it can be
// reached.
func (f *factory) completeWorkloadClusters(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := []string{}
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	if repo, err := f.fleetRepo(); err == nil {
		names = f.declaredNames(ctx, repo)
	}
	if target, err := f.target(); err == nil {
		there, err := management.WorkloadNames(ctx, target)
		if err == nil {
			declared := func(full string) bool {
				return slices.ContainsFunc(names, func(name string) bool { return path.Base(name) == path.Base(full) })
			}
			names = append(names, slices.DeleteFunc(there, declared)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// completeDeclared completes the name of a cluster that the repo declares, for commands that only look: from a chart or as plain manifests,
// with or without a fleet.yaml.
func (f *factory) completeDeclared(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	repo, err := f.anyRepo()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	return f.declaredNames(ctx, repo), cobra.ShellCompDirectiveNoFileComp
}

// declaredNames are the names of all clusters that the repo declares, as commands take them. Those of plain manifests are missing if they
// cannot be found in time.
func (f *factory) declaredNames(ctx context.Context, repo *fleetrepo.Repo) []string {
	names := repo.Choices()
	cacheDir, err := f.cacheDir()
	if err != nil {
		return names
	}
	all, _, err := review.Clusters(ctx, repo, cacheDir)
	if err != nil {
		return names
	}
	called := fleetrepo.Called(all)
	for _, c := range all {
		if c.Manifests {
			names = append(names, called(c))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completionTimeout bounds the time of a completion in a shell.
const completionTimeout = 3 * time.Second
