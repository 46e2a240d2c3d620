//go:build e2e

package fleetbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

// seed is an error in the file of one cluster.
type seed struct{ what, old, becomes string }

// seeds are errors that people make. The tests of pkg/validate plant errors for every rule. seeds has only errors in the files of clusters,
// because kubeconform may find these, too.
var seeds = []seed{
	{"field that there is not", "releaseName:", "releaseNam:"},
	{"field that there is not, deep", "    kind: HelmChart\n", "    kind: HelmChart\n    versions: v1\n"},
	{"value of the wrong type", "disableWait: true", "disableWait: sure"},
	{"value that is not taken", "name: RetryOnFailure", "name: RetryOnFriday"},
	{"duration that is none", "retryInterval: 30s", "retryInterval: soon"},
	{"field that has to be there", "  interval: 10m\n", ""},
	{"version that is not served", "helm.toolkit.fluxcd.io/v2", "helm.toolkit.fluxcd.io/v9"},
	{"value that the chart does not know", "    kubernetesVersion:", "    kubernetesVersio:"},
	{"value that the chart refuses", "kubernetesVersion: v1.36.3", "kubernetesVersion: latest"},
	{"label that is none", "fleet.example.com/number: n", "fleet.example.com/number: not one "},
	{"chart that is not there", "kind: HelmChart\n    name: ", "kind: HelmChart\n    name: x-"},
	{"dependency that is not there", "  interval: 10m\n", "  interval: 10m\n  dependsOn: [{name: nowhere}]\n"},
	{"other release than cluster", "releaseName: c", "releaseName: d"},
	{"no prune protection", "prune: disabled\nspec", "prune: enabled\nspec"},
	{"name that is none", "kind: Namespace\nmetadata:\n  name: c", "kind: Namespace\nmetadata:\n  name: C_"},
	{
		"secret in clear", "---\n",
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: flux-system}\nstringData: {password: hunter2}\n---\n",
	},
	{"namespace made twice", "---\n", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: c00000}\n---\n"},
}

// unreadable are those after which a file cannot be read: what others refer to may be in it, so validate looks at references when it can
// be.
var unreadable = []seed{
	{"key given twice", "  interval: 10m\n", "  interval: 10m\n  interval: 5m\n"},
	{"no YAML", "  chartRef:\n", "  chartRef: [\n"},
}

// found are the clusters that a program finds something wrong with.
type found map[string]bool

// seeded plants the errors and prints how many of them fleetctl and kubeconform find.
func (m *bench) seeded() {
	m.Helper()
	ours, theirs := 0, 0
	for _, some := range [][]seed{seeds, unreadable} {
		o, t := m.plant(some)
		ours, theirs = ours+o, theirs+t
	}
	all := len(seeds) + len(unreadable)
	fmt.Printf("seeded errors found: fleetctl validate %d of %d, kubeconform %d of %d\n", ours, all, theirs, all)
}

// plant plants errors in a fleet, each in a separate cluster, and counts the errors that each program finds. kubeconform gets the files of
// the repo, and all objects that could be rendered.
func (m *bench) plant(some []seed) (byOurs, byTheirs int) {
	m.Helper()
	dir := m.TempDir()
	if err := rendertest.Write(dir, 2*len(some)+6); err != nil {
		m.Fatal(err)
	}
	for i, s := range some {
		file := filepath.Join(dir, filepath.FromSlash(rendertest.File(i+1)))
		content, err := os.ReadFile(file)
		if err != nil {
			m.Fatal(err)
		}
		if !strings.Contains(string(content), s.old) {
			m.Fatalf("%s: %q is not in %s", s.what, s.old, file)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(content), s.old, s.becomes, 1)), 0o644); err != nil {
			m.Fatal(err)
		}
	}
	ours, theirs := m.oursIn(dir), m.theirsIn(dir)
	for i, s := range some {
		if ours[rendertest.Name(i+1)] {
			byOurs++
		} else {
			m.Errorf("validate does not find: %s", s.what)
		}
		if theirs[rendertest.Name(i+1)] {
			byTheirs++
		}
	}
	if clean := rendertest.Name(len(some) + 5); ours[clean] || theirs[clean] {
		m.Errorf("something is found in %s, which has no error", clean)
	}
	return byOurs, byTheirs
}

// oursIn runs fleetctl validate.
func (m *bench) oursIn(dir string) found {
	cmd := exec.CommandContext(m.Context(), m.program, "validate", "-o", "json", "--repo", dir, "--cache-dir", m.TempDir(), "--crds",
		need(m.B, "FLEETCTL_BENCH_CRDS"))
	out, err := cmd.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		m.Fatal(err)
	}
	var result struct {
		Findings []struct {
			File     string `json:"file"`
			Severity string `json:"severity"`
		} `json:"findings"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		m.Fatalf("%v: %.500s", err, out)
	}
	by := found{}
	for _, f := range result.Findings {
		if f.Severity == "error" {
			by[filepath.Base(filepath.Dir(filepath.FromSlash(f.File)))] = true
		}
	}
	return by
}

// theirsIn runs kubeconform over the repo and over what renders.
func (m *bench) theirsIn(dir string) found {
	rendered := filepath.Join(m.TempDir(), "rendered")
	// Its outcome says that there are errors, and what renders is written all the same.
	_ = exec.CommandContext(m.Context(), m.program, "render", "--repo", dir, "--cache-dir", m.TempDir(), "--output-dir", rendered).Run()
	folders := []string{filepath.Join(dir, "providers")}
	if _, err := os.Stat(rendered); err == nil {
		folders = append(folders, rendered)
	}
	args := append(m.kubeconformArgs(), "-output", "json")
	out, err := exec.CommandContext(m.Context(), filepath.Join(m.peers, "kubeconform"), append(args, folders...)...).Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		m.Fatal(err)
	}
	var result struct {
		Resources []struct {
			Filename string `json:"filename"`
			Status   string `json:"status"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		m.Fatalf("%v: %.500s", err, out)
	}
	by := found{}
	for _, r := range result.Resources {
		if r.Status != "statusInvalid" && r.Status != "statusError" {
			continue
		}
		for i := range 2 * len(seeds) {
			if strings.Contains(r.Filename, rendertest.Name(i)) {
				by[rendertest.Name(i)] = true
			}
		}
	}
	return by
}
