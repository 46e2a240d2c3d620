package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A root that has handed over what it had, and has ended, is no fault of the fleet, if the fleet repo says so of the cluster that it names.
// A root that this machine knows is asked, whatever the repo says.
func TestEndedRootIsNotAsked(t *testing.T) {
	const uid, another = "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "0b4e28ba-2fa1-11d2-883f-0016d3cca427"
	const fleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: masters}
spec:
  git: {url: "https://git.example.com/acme/fleet.git"}
  environments: [{name: dev}]
  managementClusters:
  - {name: root, cloud: root, host: {type: embedded}, providers: [{name: docker}]}
`
	for name, test := range map[string]struct {
		made, ended   string
		known, nobody bool
	}{
		"it has ended":                          {made: uid, ended: uid, nobody: true},
		"an earlier one has ended":              {made: uid, ended: another},
		"nothing says that it has ended":        {made: uid},
		"nothing says which one has ended":      {ended: uid},
		"it has ended, and this machine doubts": {made: uid, ended: uid, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			dir, remembered := t.TempDir(), t.TempDir()
			t.Chdir(dir)
			write := func(file, content string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("fleet.yaml", fleet)
			if test.made != "" {
				write("providers/root/v1/management.id", "uid: "+test.made+"\n")
			}
			if test.ended != "" {
				write("providers/root/v1/handed-over/root.yaml", "ended: {uid: "+test.ended+", at: '2026-11-23T12:00:00Z'}\n")
			}
			if test.known {
				record := state.Record{
					Name: "root", Fleet: "masters", Repo: dir, GitURL: "https://git.example.com/acme/fleet.git", HostType: "embedded",
				}
				if err := (state.Store{Dir: remembered}).Cluster("root").Save(record); err != nil {
					t.Fatal(err)
				}
			}
			want := 3
			if test.nobody {
				want = 0
			}
			for _, args := range [][]string{{"status", "--all"}, {"credentials"}} {
				var stdout, stderr bytes.Buffer
				code := Main(t.Context(), ui.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
					append(args, "--state-dir", remembered, "--cache-dir", t.TempDir()))
				if code != want || test.nobody && strings.Contains(stdout.String(), "could not be asked") ||
					args[0] == "status" && test.nobody != strings.Contains(stdout.String(), "root (ended)") {
					t.Errorf("%v: exit code %d\n%s%s", args, code, stdout.String(), stderr.String())
				}
			}
		})
	}
}
