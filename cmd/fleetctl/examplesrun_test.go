package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// elsewhereInExamples finds the lines of an example's README that a machine without a management cluster and without a remote cannot run.
var elsewhereInExamples = regexp.MustCompile(`^(?:export|git|cp|cd|fleetctl (?:bootstrap|status|teardown|kubeconfig|promote --status))\b|…`)

// TestExamplesAreValidAtEachStep types what an example's README shows into a copy of the example, and validates the fleet before the first
// line and after each: where the README has `fleetctl init`, what init would write is there from then on.
func TestExamplesAreValidAtEachStep(t *testing.T) {
	examples, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", v1alpha1.FileName))
	if err != nil || len(examples) < 5 {
		t.Fatalf("%v: %q", err, examples)
	}
	for _, file := range examples {
		example := filepath.Dir(file)
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			f := docsFleetIn(t, t.TempDir())
			if err := os.Mkdir(f.home, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(f.dir, os.DirFS(example)); err != nil {
				t.Fatal(err)
			}
			if err := identify(f.home); err != nil {
				t.Fatal(err)
			}
			f.valid("git init --quiet --initial-branch main && git add --all && git commit --quiet --message Begin")
			readme, err := os.ReadFile(filepath.Join(example, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			for _, typed := range typedLines(string(readme)) {
				switch line := typed.command; {
				case elsewhereInExamples.MatchString(line):
				case strings.HasPrefix(line, "fleetctl init"):
					f.initialised(line)
					f.valid("git add --all && git commit --quiet --allow-empty --message 'What init writes'")
				case strings.HasPrefix(line, "fleetctl promote"):
					f.valid(line + " --skip-health --commit")
				default:
					f.valid(strings.Replace(line, "--push", "--commit", 1))
				}
			}
		})
	}
}

// valid runs a line and validates what it leaves.
func (f *docsFleet) valid(line string) {
	f.t.Helper()
	if out, code := f.run(line); code != 0 {
		f.t.Fatalf("%s: exit code %d\n%s", line, code, out)
	}
	if out, code := f.run("fleetctl validate --offline"); code != 0 {
		f.t.Fatalf("after %s: exit code %d\n%s", line, code, out)
	}
}

// initialised puts into the repo what a command of init writes of the management clusters that it is about.
func (f *docsFleet) initialised(command string) {
	f.t.Helper()
	fleet, err := v1alpha1.Load(filepath.Join(f.dir, v1alpha1.FileName))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range fleet.Spec.ManagementClusters {
		m := &fleet.Spec.ManagementClusters[i]
		if len(fleet.Spec.ManagementClusters) > 1 && !strings.Contains(command+" ", "--management "+m.Name+" ") {
			continue
		}
		if out, code := f.run("fleetctl init --scaffold --management " + m.Name + " && (git remote remove origin || true)"); code != 0 {
			f.t.Fatalf("exit code %d\n%s", code, out)
		}
		l := m.Layout()
		sync := filepath.Join(f.dir, filepath.FromSlash(l.SyncFile()))
		if err := os.MkdirAll(filepath.Dir(sync), 0o755); err != nil {
			f.t.Fatal(err)
		}
		for name, content := range map[string]string{
			sync: source + "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: " +
				"flux-system}\n" +
				"spec: {interval: 10m, path: ./" + l.Management() + ", prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n",
			filepath.Join(filepath.Dir(sync), layout.ComponentsFile): "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n",
		} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				f.t.Fatal(err)
			}
		}
		for _, e := range fleet.Spec.Environments {
			initialised(f.t, f.dir, l, e.Name)
		}
	}
}
