package cmd

import (
	"bytes"
	"cmp"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// exampleRepo is a fleet repo to parse in: parsing changes nothing.
const exampleRepo = "../../examples/two-clouds"

// parsed completes the options of a command line and runs nothing. answers is what a person types at the terminal, which gives one line at
// a time; without answers there is no terminal.
func parsed(t *testing.T, answers string, args ...string) (o any, f *factory, err error) {
	t.Helper()
	streams := ui.Streams{
		In: iotest.OneByteReader(strings.NewReader(answers)), Out: &bytes.Buffer{}, Err: &bytes.Buffer{},
		InTerminal: answers != "",
	}
	f = newFactory(streams)
	f.completed = func(options any) { o = options }
	root := newRootCmd(f)
	root.SetArgs(append([]string{"--state-dir", t.TempDir(), "--cache-dir", t.TempDir()}, args...))
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err = root.ExecuteContext(t.Context())
	return o, f, err
}

// isolate keeps the configuration and the credentials of whoever runs the tests out of them.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "kubeconfig"))
	t.Setenv(tokenVariable, "from-the-environment")
	t.Setenv(fluxTokenVariable, "")
}

// of reads from the options of one command what a case is about.
func of[O any](get func(o O) any) func(t *testing.T, o any) any {
	return func(t *testing.T, o any) any {
		t.Helper()
		options, ok := o.(O)
		if !ok {
			t.Fatalf("options are %T", o)
		}
		return get(options)
	}
}

func list(values ...any) []any { return values }

// What command lines become, for the commands that parse more than flags.
func TestParse(t *testing.T) {
	isolate(t)
	dir, err := filepath.Abs(exampleRepo)
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("snapshots")
	if err != nil {
		t.Fatal(err)
	}
	initOf := of(func(o *initOptions) any {
		return list(o.Dir, o.Cluster, o.Providers, o.Git.Token, o.FluxToken, o.Timeout, o.UpgradeOnly)
	})
	for name, test := range map[string]struct {
		line string
		get  func(t *testing.T, o any) any
		want any
	}{
		"init": {
			"init -m mgmt-aws --provider aws,azure:v1.23.0 --provider in-memory --timeout 20m", initOf,
			list(dir, "mgmt-aws", []session.Provider{{Name: "aws"}, {Name: "azure", Version: "v1.23.0"}, {Name: "in-memory"}},
				"from-the-environment", "", 20*time.Minute, false),
		},
		"init where the one before is gone": {
			"init --source-is-gone", of(func(o *initOptions) any { return o.FormerIsGone }), true,
		},
		"upgrade apply is an init that makes nothing": {
			"upgrade apply", initOf, list(dir, "", []session.Provider(nil), "from-the-environment", "", time.Duration(0), true),
		},
		"bootstrap": {
			"bootstrap --pivot-to platform --source-is-gone --provider aws",
			of(func(o *bootstrapOptions) any {
				b := o.bootstrap
				return list(b.PivotTo, b.SourceIsGone, b.Ephemeral, b.Dir, b.Providers, b.ClustersTimeout)
			}),
			list("platform", true, true, dir, []session.Provider{{Name: "aws"}}, lifecycle.DefaultClustersTimeout),
		},
		"pivot": {
			"pivot --to prod/platform --dry-run",
			of(func(o *pivotOptions) any { return list(o.pivot.To, o.pivot.DryRun, o.pivot.Abort, o.pivot.Dir) }),
			list("prod/platform", true, false, dir),
		},
		"restore from a folder": {
			"restore --from snapshots --source-is-gone",
			of(func(o *restoreOptions) any { return list(o.restore.From, o.restore.SourceIsGone, o.restore.Dir) }), list(here, true, dir),
		},
		"drill from a registry": {
			"drill --from oci://registry.example.com/s --max-age 24h --bundle b --skip-preflight downloads",
			of(func(o *drillOptions) any {
				return list(o.drill.From, o.drill.MaxAge, o.drill.Dir, o.drill.Bundle, o.drill.SkipPreflight)
			}),
			list("oci://registry.example.com/s", 24*time.Hour, dir, "b", []string{"downloads"}),
		},
		"backup to a branch": {
			"backup -m mgmt-aws --to branch:snapshots",
			of(func(o *backupOptions) any { return list(o.To, o.Target.Name, o.Git.Token) }),
			list("branch:snapshots", "mgmt-aws", "from-the-environment"),
		},
		"doctor runs no commands": {
			"doctor", of(func(o *doctorOptions) any { return o.NoCommands }), true,
		},
		"doctor that may": {
			"doctor --run-commands", of(func(o *doctorOptions) any { return o.NoCommands }), false,
		},
		"bundle create": {
			"bundle create out.tar.zst --programs releases --etcd-releases https://mirror.example.com",
			of(func(o *bundleCreateOptions) any {
				return list(o.bundle.Output, o.bundle.Programs, o.bundle.Releases.Etcd, o.bundle.Dir)
			}),
			list("out.tar.zst", "", "https://mirror.example.com", dir),
		},
		"bundle extract": {
			"bundle extract b.tar.zst out charts/a charts/b",
			of(func(o *bundleExtractOptions) any { return list(o.bundle, o.folder, o.names) }),
			list("b.tar.zst", "out", []string{"charts/a", "charts/b"}),
		},
		"a channel of tags": {
			"channel add release", of(func(o *channelAddOptions) any { return list(o.channel.Name, o.channel.Tag, o.channel.Branch) }),
			list("release", "v*", ""),
		},
		"a channel of a branch": {
			"channel add next --branch next", of(func(o *channelAddOptions) any { return list(o.channel.Name, o.channel.Tag, o.channel.Branch) }),
			list("next", "", "next"),
		},
		"chart update": {
			"chart update aws-eks docker --prefer team",
			of(func(o *chartUpdateOptions) any { return list(o.charts, o.prefer) }), list([]string{"aws-eks", "docker"}, fleetrepo.PreferTeam),
		},
		"cluster add": {
			"cluster add new --flavour aws-eks --environment dev --set region=eu-central-1 -m mgmt-aws",
			of(func(o *clusterAddOptions) any {
				return list(o.Name, o.Flavour, o.Environment, o.ManagementCluster, len(o.Set), o.Set[0].Path.String(), o.Set[0].Value)
			}),
			list("new", "aws-eks", "dev", "mgmt-aws", 1, "region", "eu-central-1"),
		},
		"cluster scale": {
			"cluster scale shop --replicas 3", of(func(o *clusterScaleOptions) any { return list(o.name, o.replicas) }), list("shop", 3),
		},
		"cluster upgrade": {
			"cluster upgrade shop --kubernetes-version v1.36.3 --pool a,b --set image=x",
			of(func(o *clusterUpgradeOptions) any {
				return list(o.upgrade.Cluster, o.upgrade.Version, o.upgrade.Pools, len(o.upgrade.Values))
			}),
			list("shop", "v1.36.3", []string{"a", "b"}, 1),
		},
		"cluster transfer": {
			"cluster transfer shop --to azure --pr",
			of(func(o *clusterTransferOptions) any {
				return list(o.Cluster, o.To, o.DryRun, o.Change.PullRequest, o.Change.Git.Token)
			}),
			list("shop", "azure", false, true, "from-the-environment"),
		},
		"a transfer fetches the remote, even if it pushes nothing": {
			"cluster transfer shop --dry-run", of(func(o *clusterTransferOptions) any { return list(o.DryRun, o.Change.Git.Token) }),
			list(true, "from-the-environment"),
		},
		"diff of two": {
			"diff v1 v2", of(func(o *diffOptions) any { return list(o.from, o.to) }), list("v1", "v2"),
		},
		"an environment as its name says": {
			"environment set prod --channel main",
			of(func(o *environmentSetOptions) any {
				return list(o.name, o.options().Channel, o.options().Production == nil)
			}), list("prod", "main", true),
		},
		"an environment that is no production": {
			"environment set prod --production=false",
			of(func(o *environmentSetOptions) any { return *o.options().Production }), false,
		},
		"feature of a chart": {
			"feature add x --chart https://charts.example.com/x --version 1.0.0 --set a.b=true",
			of(func(o *featureAddOptions) any { return list(o.name, o.chart.URL, o.chart.Values) }),
			list("x", "https://charts.example.com/x", map[string]any{"a": map[string]any{"b": true}}),
		},
		"feature for all management clusters": {
			"feature enable x --on-management",
			of(func(o *featureSwitchOptions) any { return list(o.targets().Management, o.targets().ManagementCluster) }), list(true, ""),
		},
		"values for one management cluster": {
			"feature values x --on-management=aws --set a=b",
			of(func(o *featureValuesOptions) any { return list(o.targets().Management, o.targets().ManagementCluster) }), list(true, "aws"),
		},
		"feature for one management cluster": {
			"feature enable x --on-management=aws",
			of(func(o *featureSwitchOptions) any { return list(o.targets().Management, o.targets().ManagementCluster) }), list(true, "aws"),
		},
		"feature for an environment": {
			"feature disable x --environment dev",
			of(func(o *featureSwitchOptions) any { return list(o.targets().Management, o.targets().Environments) }), list(false, []string{"dev"}),
		},
		"host exec": {
			"host exec --bundle b -- kubectl get --bundle x",
			of(func(o *hostExecOptions) any { return list(o.Bundle, o.Command) }), list("b", []string{"kubectl", "get", "--bundle", "x"}),
		},
		"lock --check changes nothing": {
			"lock --check", of(func(o *lockOptions) any { return list(o.check, o.dryRun) }), list(true, true),
		},
		"management add": {
			"management add new --provider aws:v2.13.0,azure --host existing --host-context there",
			of(func(o *managementAddOptions) any {
				p := o.wanted.Providers
				return list(o.wanted.Name, string(o.wanted.Host.Type), o.wanted.Host.Existing.Context, len(p), p[0].Name, p[0].Version, p[1].Name)
			}),
			list("new", "existing", "there", 2, "aws", "v2.13.0", "azure"),
		},
		"standby add": {
			"standby add spare --of platform --host existing --host-context there",
			of(func(o *standbyAddOptions) any {
				return list(o.wanted.Name, o.wanted.Of, string(o.wanted.Host.Type), o.wanted.Host.Existing.Context)
			}),
			list("spare", "platform", "existing", "there"),
		},
		"standby refresh": {
			"standby refresh spare --from /srv/s --max-age 24h",
			of(func(o *drillOptions) any {
				return list(o.drill.Cluster, o.drill.From, o.drill.MaxAge, o.drill.Dir)
			}),
			list("spare", "/srv/s", 24*time.Hour, dir),
		},
		"standby activate": {
			"standby activate spare --snapshot s --source-is-gone --pause-elsewhere",
			of(func(o *standbyActivateOptions) any {
				a := o.activate
				return list(a.Cluster, a.Snapshot, a.SourceIsGone, a.PauseElsewhere, a.HandOver)
			}),
			list("spare", "s", true, true, false),
		},
		"the size of a pool": {
			"pool scale shop general --min 2 --max 0",
			of(func(o *poolScaleOptions) any {
				return list(o.cluster, o.pool, o.wanted.Replicas == nil, *o.wanted.Min, *o.wanted.Max)
			}),
			list("shop", "general", true, 2, 0),
		},
		"promote asks the remote": {
			"promote --to v1.0.0 --dry-run",
			of(func(o *promoteOptions) any {
				return list(o.promotion.To, o.promotion.Change.DryRun, o.promotion.Change.Git.Token)
			}),
			list("v1.0.0", true, "from-the-environment"),
		},
		"provider add": {
			"provider add in-cluster:v1.0.0 --type ipam -m mgmt-aws",
			of(func(o *providerAddOptions) any {
				return list(o.management, o.provider.Name, o.provider.Version, string(o.provider.Type))
			}),
			list("mgmt-aws", "in-cluster", "v1.0.0", "ipam"),
		},
		"a new Secret": {
			"secret encrypt " + exampleRepo + "/db.sops.yaml --from-literal a=1 --from-literal b=x=y",
			of(func(o *secretEncryptOptions) any {
				return list(o.file, o.made.Name, string(o.made.Data["a"]), string(o.made.Data["b"]))
			}),
			list("db.sops.yaml", "db", "1", "x=y"),
		},
		"status of one cluster": {
			"status shop", of(func(o *statusOptions) any { return list(o.clusters, o.watch, o.interval) }),
			list([]string{"shop"}, false, 2*time.Second),
		},
		"a tenant with an application": {
			"tenant add shop --source https://github.com/acme/shop --path deploy",
			of(func(o *tenantAddOptions) any { return list(o.name, o.tenant.Source.URL, o.tenant.Source.Path) }),
			list("shop", "https://github.com/acme/shop", "deploy"),
		},
		"a tenant without": {
			"tenant add shop", of(func(o *tenantAddOptions) any { return o.tenant.Source == nil }), true,
		},
		"validate": {
			"validate providers/aws --strict", of(func(o *validateOptions) any { return list(o.Dir, o.Paths, o.Strict) }),
			list(dir, []string{"providers/aws"}, true),
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, err := parsed(t, "", append([]string{"-C", exampleRepo}, strings.Fields(test.line)...)...)
			if err != nil {
				t.Fatal(err)
			}
			if got := test.get(t, o); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s:\n got %#v\nwant %#v", test.line, got, test.want)
			}
		})
	}
}

// What a person at a terminal is asked for, and what becomes of the answers.
func TestParseAnswers(t *testing.T) {
	isolate(t)
	for name, test := range map[string]struct {
		line, answers string
		get           func(t *testing.T, o any) any
		want          any
	}{
		"the name and the size of a pool": {
			"pool add shop", "batch\n1-5\n",
			of(func(o *poolAddOptions) any {
				return list(o.pool, *o.wanted.Min, *o.wanted.Max, o.wanted.Replicas == nil)
			}), list("batch", 1, 5, true),
		},
		"a fixed size": {
			"pool scale shop general", "4\n", of(func(o *poolScaleOptions) any { return *o.wanted.Replicas }), 4,
		},
		"nodes of the control plane": {
			"cluster scale shop", "3\n", of(func(o *clusterScaleOptions) any { return o.replicas }), 3,
		},
		"a version": {
			"cluster upgrade shop", "v1.37.0\n", of(func(o *clusterUpgradeOptions) any { return o.upgrade.Version }), "v1.37.0",
		},
		"the name of a network": {"cni add", "mesh\n", of(func(o *cniAddOptions) any { return o.name }), "mesh"},
		"bootstrap asks nothing": {
			"bootstrap", "yes\n", of(func(*bootstrapOptions) any { return nil }), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, f, err := parsed(t, test.answers, append([]string{"-C", exampleRepo}, strings.Fields(test.line)...)...)
			if err != nil {
				t.Fatal(err)
			}
			if got := test.get(t, o); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: %#v, not %#v", test.line, got, test.want)
			}
			if _, bootstrap := o.(*bootstrapOptions); bootstrap && f.streams.InTerminal {
				t.Error("it would ask")
			}
		})
	}
}

// Command lines that say two things at once, or nothing: a usage error, before anything runs.
func TestParseRefuses(t *testing.T) {
	isolate(t)
	for line, want := range map[string]string{
		"adopt --kubeconfig x":                                   "--kubeconfig says nothing about which cluster",
		"app add web --source https://example.com/x":             "the tenant of the application is missing",
		"app remove web":                                         "the tenant of the application is missing",
		"bundle create x --etcd-releases y":                      "--programs releases",
		"channel add x --tag v* --branch b":                      "a branch or tags, not both",
		"chart update --prefer me":                               "neither team nor fleetctl",
		"cluster detach shop --abort --dry-run":                  "--abort changes something",
		"cluster kubeconfig shop --merge --output-file x":        "--merge and --output-file",
		"cluster remove shop --wait":                             "--wait waits for a commit",
		"cluster remove shop --wait --push --dry-run":            "--wait waits for a commit",
		"cluster scale shop":                                     "the number of nodes is missing",
		"cluster transfer shop --abort --dry-run":                "--abort changes something",
		"cluster transfer shop --push --pr":                      "two ways to the same branch",
		"cluster upgrade shop":                                   "the version to upgrade to is missing",
		"cni add":                                                "the name of the network is missing",
		"kubeconfig --merge --output-file x":                     "--merge and --output-file",
		"pool list shop --environment prod":                      "not both",
		"upgrade plan --to latest -o name":                       "--output name is for lists",
		"validate -o wide":                                       "--output wide is for lists",
		"connect --forget --context x":                           "--forget takes neither --kubeconfig nor --context",
		"orphans --gone mgmt":                                    "--delete",
		"credentials --within -1h":                               "is negative",
		"drill --max-age -1h":                                    "is negative",
		"drill --skip-preflight memroy":                          "there is no preflight check \"memroy\"",
		"drill --skip-preflight memory":                          "--skip-preflight memory has no effect",
		"standby refresh spare --skip-preflight memory":          "unknown flag: --skip-preflight",
		"standby refresh spare --bundle x":                       "unknown flag: --bundle",
		"standby refresh spare --max-age -1h":                    "is negative",
		"standby activate spare --abort --dry-run":               "--abort changes something",
		"standby activate spare --hand-over --source-is-gone":    "--hand-over takes the work",
		"environment pause dev --now --push":                     "use either --now",
		"feature add x --set a=b":                                "--set is about a chart",
		"feature add x --version 1":                              "--version is about a chart",
		"feature add x --bundle b":                               "--bundle is about a chart",
		"feature values x":                                       "nothing to set",
		"host issuer export":                                     "the folder to write to is missing",
		"host logs etcd --lines 0":                               "not a number of lines",
		"init --provider aws:2":                                  "is not NAME or NAME:VERSION",
		"init --scaffold --dry-run":                              "--scaffold writes",
		"init --timeout -1s":                                     "is negative",
		"lock --check --push":                                    "--check changes nothing",
		"orphans --region --provider aws":                        "--region has no value: the next word is the flag --provider",
		"app add web --source -o json":                           "--source has no value: the next word is the flag -o",
		"feature values x --set --push":                          "--set has no value: the next word is the flag --push",
		"pivot --abort --dry-run":                                "--abort changes something",
		"pivot --without-target":                                 "--without-target is for an abort",
		"promote --status --to v1":                               "--status changes nothing",
		"provider add :v1":                                       "is not NAME or NAME:VERSION",
		"render shop --environment prod":                         "a cluster or --environment, not both",
		"restore --abort --dry-run":                              "--abort changes something",
		"secret edit /elsewhere":                                 "is not in the fleet repo",
		"secret encrypt " + exampleRepo + "/x --from-literal a":  "has no key",
		"secret encrypt " + exampleRepo + "/x --from-literal =a": "a key is given twice or empty",
		"status --all --watch":                                   "--all shows every management cluster",
		"status --all shop":                                      "--all shows every management cluster",
		"status --watch --interval 0s":                           "is not positive",
		"status shop --watch":                                    "--watch shows all clusters",
		"upgrade plan --push":                                    "a plan alone changes nothing",
		"upgrade plan --to latest --offline":                     "--offline forbids it",
		"upgrade plan --to v1":                                   "there is only latest",
	} {
		t.Run(line, func(t *testing.T) {
			o, _, err := parsed(t, "", append([]string{"-C", exampleRepo}, strings.Fields(line)...)...)
			if err == nil || !strings.Contains(err.Error(), want) || diag.Code(err) != diag.ExitUsage || diag.Hint(err) == "" || o != nil {
				t.Errorf("options %v, error %v (code %d, hint %q)", o, err, diag.Code(err), cmp.Or(diag.Hint(err), "none"))
			}
		})
	}
}
