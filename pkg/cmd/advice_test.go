package cmd

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

const severalManagementClusters = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  environments: [{name: dev}]
  managementClusters:
  - {name: east, host: {type: embedded}, providers: [{name: aws}]}
  - {name: west, host: {type: embedded}, providers: [{name: azure}]}
`

// advisor is a factory in a fleet repo with this fleet.yaml, with the flag --management.
func advisor(t *testing.T, fleet, management string) *factory {
	t.Helper()
	dir := t.TempDir()
	if fleet != "" {
		if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(fleet), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := newFactory(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	newRootCmd(f)
	f.flags.repo, f.flags.management = dir, management
	return f
}

func TestAdvice(t *testing.T) {
	one, _, _ := strings.Cut(severalManagementClusters, "  - {name: west")
	for name, tt := range map[string]struct {
		fleet, flag string
		about       []string
		text, want  string
	}{
		"the flag names it": {
			severalManagementClusters, "east", nil,
			"make it with `fleetctl init`; or else: `fleetctl connect`",
			"make it with `fleetctl init --management east`; or else: `fleetctl connect --management east`",
		},
		"the flag goes before what a result is about": {
			severalManagementClusters, "east", []string{"west"}, "`fleetctl status` shows it", "`fleetctl status --management east` shows it",
		},
		"a result is about one": {severalManagementClusters, "", []string{"west"}, "`fleetctl init`", "`fleetctl init --management west`"},
		"a result is about two": {
			severalManagementClusters, "",
			[]string{"east", "west"},
			"run `fleetctl init`, then look", "run `fleetctl init --management east` and `fleetctl init --management west`, then look",
		},
		"none is known": {severalManagementClusters, "", nil, "`fleetctl host logs etcd`", "`fleetctl host logs etcd --management NAME`"},
		"a next step": {
			severalManagementClusters, "east", nil,
			"fleetctl status                      # what runs", "fleetctl status --management east    # what runs",
		},
		"a next step without room": {severalManagementClusters, "east", nil, "fleetctl init # again", "fleetctl init --management east # again"},
		"a sentence":               {severalManagementClusters, "east", nil, "run fleetctl in the fleet repo", "run fleetctl in the fleet repo"},
		"it says which":            {severalManagementClusters, "east", nil, "`fleetctl init -m west`", "`fleetctl init -m west`"},
		"another repo":             {severalManagementClusters, "east", nil, "`fleetctl teardown -C ../x`", "`fleetctl teardown -C ../x`"},
		"all of them":              {severalManagementClusters, "east", nil, "`fleetctl promote`", "`fleetctl promote`"},
		"a commit pauses it":       {severalManagementClusters, "east", nil, "`fleetctl cluster resume shop`", "`fleetctl cluster resume shop`"},
		"it takes no such flag":    {severalManagementClusters, "east", nil, "`fleetctl validate`", "`fleetctl validate`"},
		"no command":               {severalManagementClusters, "east", nil, "`fleetctl nonsense`", "`fleetctl nonsense`"},
		"it finds the one":         {severalManagementClusters, "", nil, "`fleetctl why shop`", "`fleetctl why shop`"},
		"an environment of a bootstrap": {
			severalManagementClusters, "east", nil, "`fleetctl bootstrap --environment dev`", "`fleetctl bootstrap --environment dev`",
		},
		"a single one":              {one, "east", nil, "`fleetctl init`", "`fleetctl init`"},
		"outside of a fleet repo":   {"", "", nil, "`fleetctl init`", "`fleetctl init`"},
		"outside, with the flag":    {"", "east", nil, "`fleetctl status`", "`fleetctl status --management east`"},
		"a fleet.yaml with a fault": {"spec: [", "east", nil, "`fleetctl init`", "`fleetctl init --management east`"},
	} {
		t.Run(name, func(t *testing.T) {
			f := advisor(t, tt.fleet, tt.flag)
			f.about = tt.about
			if got := f.advise(tt.text); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Hints of one run decode fleet.yaml once. After an edit of fleet.yaml, the next hint knows the new management clusters.
func TestAdviceDecodesAnUnchangedFleetOnce(t *testing.T) {
	one, _, _ := strings.Cut(severalManagementClusters, "  - {name: west")
	f := advisor(t, one, "")
	file := filepath.Join(f.flags.repo, v1alpha1.FileName)
	hints := func(want string) {
		t.Helper()
		for range 20 {
			if got := f.advise("`fleetctl init`"); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	hints("`fleetctl init`")
	first := f.counted.Load()
	hints("`fleetctl init`")
	if first == nil || f.counted.Load() != first {
		t.Error("a second look at the same fleet.yaml decoded it again")
	}
	if err := atomicfile.Write(file, []byte(severalManagementClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	hints("`fleetctl init --management NAME`")
	if err := os.WriteFile(file, []byte(one), 0o600); err != nil { // in place, as an editor does
		t.Fatal(err)
	}
	hints("`fleetctl init`")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	f.about = []string{"west"}
	hints("`fleetctl init --management west`")
}

// A reader copies what a hint says. In a fleet with several management clusters, every command of a hint that works on one says which.
func TestEveryHintNamesTheManagementCluster(t *testing.T) {
	inSource := regexp.MustCompile("`(fleetctl [a-z][^`\"\n]*)`|\"(fleetctl [a-z][^`\"\n]*)\"")
	f := advisor(t, severalManagementClusters, "east")
	complete := map[string]bool{ // these need no name
		"fleetctl status --all": true, "fleetctl teardown --help": true, "fleetctl standby activate --help": true,
		"fleetctl bootstrap --environment": true, "fleetctl init --scaffold": true,
	}
	completed := 0
	if err := fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			return err
		}
		for _, found := range inSource.FindAllStringSubmatch(string(content), -1) {
			text := found[1] + found[2]
			if found[1] != "" {
				text = "`" + text + "`"
			}
			line, _, _ := strings.Cut(strings.Trim(f.advise(text), "`"), " #")
			c, _, err := f.root.Find(strings.Fields(line)[1:])
			if err != nil || c.Flags().Lookup("management") == nil || c.Annotations[withoutManagement] == worksOnAll || complete[line] {
				continue // TestCommandsInHints holds them against the commands
			}
			if completed++; !strings.Contains(line, " --management ") {
				t.Errorf("%s: %q does not say on which management cluster", name, line)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if completed < 200 {
		t.Errorf("found only %d commands", completed)
	}
}

// The hint below the table of credentials is about the management clusters whose credentials end. Of a lease of Vault nobody has to change
// anything at its source.
func TestAdviceOnCredentials(t *testing.T) {
	for _, tc := range []struct {
		ends      string
		renewable bool
		want      string
	}{
		{management.EndsSoon, false, "Change them at their source, and run `fleetctl init --management west`."},
		{management.EndsSoon, true, "Run `fleetctl init --management west`, which renews them."},
		{management.Ended, true, "(ended; `fleetctl init` renews it)"},
	} {
		f := advisor(t, severalManagementClusters, "")
		out := &strings.Builder{}
		f.streams.Out = out
		f.streams = f.streams.Advising(f.advise)
		until := time.Now()
		err := f.show(views.Credentials(&management.CredentialsReport{Ending: 1, Clusters: []management.ClusterCredentials{
			{Name: "east", Credentials: []management.Credential{{Provider: "aws", Name: "A"}}},
			{Name: "west", Credentials: []management.Credential{
				{Provider: "azure", Name: "B", Ends: tc.ends, Until: &until, Renewable: tc.renewable},
			}},
		}}, time.Hour))
		if err != nil || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%v, printed:\n%s", err, out)
		}
	}
}
