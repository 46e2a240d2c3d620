package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// options are what a command reads in the end.
type options struct {
	output, management, url string
	timeout                 time.Duration
	noColor, delete         bool
	skip, providers         []string
	workers                 int
	config                  string
}

// command parses args as a command does.
func command(t *testing.T, args ...string) (*pflag.FlagSet, *options) {
	t.Helper()
	var o options
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.StringVar(&o.output, "output", "human", "")
	flags.StringVar(&o.management, "management", "", "")
	flags.StringVar(&o.url, "git-url", "", "")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "")
	flags.BoolVar(&o.noColor, "no-color", false, "")
	flags.BoolVar(&o.delete, "delete-clusters", false, "")
	flags.StringSliceVar(&o.skip, "skip-preflight", []string{"none"}, "")
	flags.StringArrayVar(&o.providers, "provider", nil, "")
	flags.IntVar(&o.workers, "workers", 2, "")
	flags.StringVar(&o.config, "config", "", "")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags, &o
}

// home points the default configuration file into an empty folder, and writes it if there is content. Whoever runs the tests may have
// settings of their own in the environment: they are taken out of it.
func home(t *testing.T, content string) (path string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, envPrefix) {
			t.Setenv(name, "") // so that it is put back
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	path = filepath.Join(dir, "fleetctl", "config.yaml")
	if content != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestPrecedence(t *testing.T) {
	path := home(t, "# mine\noutput: yaml\nmanagement: of-file\ntimeout: 5m\nno-color: true\nskip-preflight:\n  - disk\n  - ports\nbundle: "+
		"/b\n")
	t.Setenv("FLEETCTL_MANAGEMENT", "of-env")
	t.Setenv("FLEETCTL_OUTPUT", "json")
	t.Setenv("FLEETCTL_GIT_URL", "https://example.org/x")
	t.Setenv("FLEETCTL_PROVIDER", "docker, aws:v2.13.0")
	t.Setenv("FLEETCTL_WORKERS", "7")
	t.Setenv("FLEETCTL_DELETE_CLUSTERS", "true")
	t.Setenv("FLEETCTL_TIMEOUT", "") // as if it were not there
	flags, o := command(t, "--output", "human")
	s, err := Load(flags, "")
	if err != nil {
		t.Fatal(err)
	}
	if o.management != "" {
		t.Error("Load changed a flag")
	}
	if err := s.Apply(flags); err != nil {
		t.Fatal(err)
	}
	want := &options{
		output: "human", management: "of-env", url: "https://example.org/x", timeout: 5 * time.Minute, noColor: true,
		skip: []string{"disk", "ports"}, providers: []string{"docker", "aws:v2.13.0"}, workers: 7,
	}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for key, origin := range map[string]string{
		"output": "flag --output", "management": "environment FLEETCTL_MANAGEMENT", "timeout": "file " + path + ":4",
		"skip-preflight": "file " + path + ":6", "bundle": "file " + path + ":9", "state-dir": "default",
		"git-url": "environment FLEETCTL_GIT_URL", "delete-clusters": "", "nonsense": "",
	} {
		if got := s.byKey[key].Origin; got != origin {
			t.Errorf("the origin of %q is %q, want %q", key, got, origin)
		}
	}
	strongest := []string{"output", "management", "timeout", "state-dir"} // of the command line, the environment, the file, and a default
	for i, strong := range strongest {
		for j, weak := range strongest {
			if got := s.Prevails(strong, weak); got != (i < j) {
				t.Errorf("%s prevails over %s: %t", strong, weak, got)
			}
		}
	}
	all := map[string]any{}
	for _, setting := range s.All() {
		all[setting.Key] = setting.Value
	}
	wantAll := map[string]any{
		"bundle": "/b", "cache-dir": "", "flux-token-file": "", "flux-username": "", "git-token-file": "", "git-url": "https://example.org/x",
		"git-username": "", "management": "of-env",
		"merge-kubeconfig": false, "no-color": true, "output": "human", "provider": []string{"docker", "aws:v2.13.0"}, "quiet": false,
		"repo": "", "skip-preflight": []string{"disk", "ports"}, "ssh-key-file": "", "ssh-known-hosts": "", "state-dir": "",
		"timeout": "5m", "workers": "7", "yes": false,
	}
	if diff := cmp.Diff(wantAll, all); diff != "" {
		t.Errorf("All (-want +got)\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	home(t, "")
	flags, o := command(t)
	s, err := Load(flags, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(flags); err != nil {
		t.Fatal(err)
	}
	want := &options{output: "human", timeout: time.Minute, skip: []string{"none"}, workers: 2}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if flags.Changed("output") {
		t.Error("a default counts as given")
	}
	for _, setting := range s.All() {
		if setting.Origin != "default" {
			t.Errorf("%+v", setting)
		}
		if setting.Key == "timeout" && setting.Value != "1m0s" {
			t.Errorf("%+v", setting)
		}
	}
}

func TestFileErrors(t *testing.T) {
	path := home(t, `outptu: json
timeout: soon
no-color: "true"
yes: [a]
skip-preflight: disk
management: a
management: b
delete-clusters: true
state-dir:
`)
	flags, _ := command(t)
	_, err := Load(flags, "")
	if _, ok := errors.AsType[diag.Findings](err); !ok {
		t.Fatalf("%v", err)
	}
	want := strings.ReplaceAll(`PATH:1:1: unknown key "outptu" (did you mean output?)
PATH:2:10: timeout: expected a duration such as 90s or 30m
PATH:3:11: no-color: expected true or false
PATH:4:6: yes: expected true or false
PATH:5:17: skip-preflight: expected a list
PATH:7:1: management is given twice, first in line 6
PATH:8:1: unknown key "delete-clusters" (give it on the command line)
PATH:9:11: state-dir: expected text`, "PATH", path)
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFileForms(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"comments only": {"# nothing\n", ""},
		"null":          {"---\n", ""},
		"list":          {"- output\n", "expected keys with values"},
		"syntax":        {"a: b\nc: [\n", "config.yaml:2:4: not valid YAML"},
		"documents":     {"output: json\n---\nquiet: true\n", "config.yaml:3:1: file has more than one YAML document"},
		"alias":         {"output: &a x\nmanagement: *a\n", "management: expected text"},
	} {
		t.Run(name, func(t *testing.T) {
			home(t, tc.content)
			flags, _ := command(t)
			_, err := Load(flags, "")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestWhichFile(t *testing.T) {
	home(t, "output: of-default-file\n")
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte("output: of-other-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(file string) (string, error) {
		flags, o := command(t)
		s, err := Load(flags, file)
		if err == nil {
			err = s.Apply(flags)
		}
		return o.output, err
	}
	if got, err := load(""); err != nil || got != "of-default-file" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := load(other); err != nil || got != "of-other-file" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := load(other + ".missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was asked for is missing: %v", err)
	}
	t.Setenv("FLEETCTL_CONFIG", other)
	if got, err := load(""); err != nil || got != "of-other-file" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestBadValues(t *testing.T) {
	for env, tc := range map[string]struct{ value, want string }{
		"FLEETCTL_NO_COLOR": {"maybe", `environment FLEETCTL_NO_COLOR: "maybe" is not true or false`},
		"FLEETCTL_TIMEOUT":  {"5", `environment FLEETCTL_TIMEOUT: "5" is not a duration`},
		"FLEETCTL_WORKERS":  {"many", "environment FLEETCTL_WORKERS does not fit --workers"},
	} {
		t.Run(env, func(t *testing.T) {
			home(t, "")
			t.Setenv(env, tc.value)
			flags, _ := command(t)
			s, err := Load(flags, "")
			if err == nil {
				err = s.Apply(flags)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || diag.Code(err) != diag.ExitUsage || diag.Hint(err) == "" {
				t.Errorf("%v (exit %d, hint %q), want %q (exit %d)", err, diag.Code(err), diag.Hint(err), tc.want, diag.ExitUsage)
			}
		})
	}
}
