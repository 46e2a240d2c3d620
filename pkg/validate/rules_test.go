package validate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// only is the one finding of a rule, and fails the test where there are others.
func only(t *testing.T, findings diag.Findings, rule string) diag.Finding {
	t.Helper()
	var found diag.Finding
	for _, f := range findings {
		if f.Rule != rule {
			t.Errorf("not expected: %s [%s]", f, f.Rule)
			continue
		}
		found = f
	}
	if found.Rule == "" {
		t.Fatalf("no finding of %s", rule)
	}
	return found
}

func TestMissingCRDs(t *testing.T) {
	result, err := Run(t.Context(), Options{
		Dir: write(t, fleet(t)), CRDs: []string{"schema/testdata/widgets.yaml"}, Offline: true,
		CacheDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Findings) != 2 || result.Errors != 0 { // one for docker, the others have no version
		t.Errorf("%d findings", len(result.Findings))
	}
	f, summaries := result.Findings[1], result.Findings[0].Summary+result.Findings[1].Summary
	for _, provider := range []string{
		"core provider cluster-api", "bootstrap provider kubeadm", "control-plane provider kubeadm", "infrastructure provider docker",
	} {
		if strings.Count(summaries, provider) != 1 {
			t.Errorf("%s: not once the %s", summaries, provider)
		}
	}
	if f.File != "fleet.yaml" || !strings.Contains(f.Hint, "--bundle") {
		t.Errorf("got %s (%s)", f, f.Hint)
	}
}

// Providers with one cause are one finding, whatever words their errors begin with; another cause is a finding of its own.
func TestUnavailableByCause(t *testing.T) {
	lacking := func(name, version string, line int, err error) lack {
		infrastructure := v1alpha1.ComponentType(v1alpha1.ProviderInfrastructure)
		return lack{v1alpha1.LockedComponent{Name: name, Type: infrastructure, Version: version}, line, err}
	}
	got := unavailable([]lack{
		lacking("vsphere", "v1.2.3", 9, errors.New("find infrastructure provider vsphere v1.2.3: no such host")),
		lacking("aws", "", 8, errNoVersion),
		lacking("azure", "v1.2.4", 7, errors.New("find infrastructure provider azure v1.2.4: no such host\nmore")),
	})
	if len(got) != 2 {
		t.Fatalf("%d findings: %s", len(got), got)
	}
	if f := got[0]; f.Line != 7 || !strings.Contains(f.Summary, "vsphere and infrastructure provider azure are not available, so their") ||
		!strings.HasSuffix(f.Summary, ": no such host") || !strings.Contains(f.Hint, "--bundle") {
		t.Errorf("%s (%s)", f, f.Hint)
	}
	if f := got[1]; f.Line != 8 || !strings.Contains(f.Summary, "aws are not available, so its objects") ||
		strings.Contains(f.Hint, "--bundle") || !strings.Contains(f.Hint, "fleetctl init") {
		t.Errorf("%s (%s)", f, f.Hint)
	}
}

// A HelmRelease that cannot be read takes the objects of its chart away and nothing else: what others refer to is still looked for.
func TestReferencesBesideUnreadableRelease(t *testing.T) {
	files := fleet(t)
	files[apps] += `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: unreadable, namespace: platform}
spec:
  interval: soon
  chart: {spec: {chart: ./charts/none, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: depends, namespace: platform}
spec:
  interval: 1m
  dependsOn: [{name: nowhere}]
  chart: {spec: {chart: ./charts/none, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
`
	result, err := Run(t.Context(), Options{Dir: write(t, files), known: knownKinds(t), Offline: true, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`is no duration`, "there is no HelmRelease platform/nowhere"} {
		if !slices.ContainsFunc(result.Findings, func(f diag.Finding) bool { return strings.Contains(f.Summary, want) }) {
			t.Errorf("nothing says %q: %v", want, result.Findings)
		}
	}
}

func TestForeignSource(t *testing.T) {
	files := fleet(t)
	files[apps] += `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: other, namespace: platform}
spec: {interval: 1m, url: "https://git.example.com/other.git", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: other, namespace: platform}
spec:
  interval: 1m
  prune: true
  path: ./elsewhere
  sourceRef: {kind: GitRepository, name: other}
`
	f := only(t, validate(t, files, knownKinds(t)).Findings, RuleForeign)
	if f.Severity != diag.SeverityWarning || f.File != apps {
		t.Errorf("got %s %s", f.Severity, f)
	}
}

func TestVariable(t *testing.T) {
	files := fleet(t)
	files[apps] = strings.Replace(files[apps], "    - kind: ConfigMap\n      name: settings", "    - kind: Secret\n      name: registry", 1)
	f := only(t, validate(t, files, knownKinds(t)).Findings, RuleVariable)
	if f.File != apps {
		t.Errorf("got %s", f)
	}
}

// What a comment silences: its line, the line below, the document below.
func TestSilence(t *testing.T) {
	known := knownKinds(t)
	for name, change := range map[string]func(string) string{
		"line": func(s string) string {
			return strings.Replace(s, "size: small", "size: smal # fleetctl:ignore invalid-value a fork has it", 1)
		},
		"line above": func(s string) string {
			return strings.Replace(s, "  size: small", "  # fleetctl:ignore invalid-value a fork has it\n  # (and another remark)\n  size: smal", 1)
		},
		"document": func(s string) string {
			return "# fleetctl:ignore invalid-value a fork has it\n" + strings.Replace(s, "size: small", "size: smal", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := fleet(t)
			files[widget] = change(files[widget])
			result := validate(t, files, known)
			report(t, result.Findings)
			if result.Ignored != 1 {
				t.Errorf("%d silenced", result.Ignored)
			}
		})
	}
}

// A removed cluster's first step takes its protection away, and that is right.
func TestRemovingNeedsNoProtection(t *testing.T) {
	files := fleet(t)
	_, release, _ := strings.Cut(files[one], "---\n")
	changed := strings.Replace(release, "prune: disabled", "prune: enabled\n    fleetctl.dev/remove: requested", 1)
	files[one] = strings.Replace(files[one], release, changed, 1)
	report(t, validate(t, files, knownKinds(t)).Findings)
}

// Any generated valid fleet validates without a finding.
func TestGeneratedFleetsAreValid(t *testing.T) {
	known := knownKinds(t)
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0)) // the same fleets in every run
			files := fleet(t)
			for i := range random.IntN(8) {
				addCluster(t, files, "staging", fmt.Sprintf("c%d", i), randomValues(random))
			}
			result := validate(t, files, known)
			report(t, result.Findings)
		})
	}
}

// randomValues are valid values of an in-memory cluster.
func randomValues(random *rand.Rand) map[string]any {
	values := map[string]any{}
	if random.IntN(2) == 0 {
		values["labels"] = map[string]any{fmt.Sprintf("example.com/l%d", random.IntN(9)): fmt.Sprintf("v%d", random.IntN(9))}
	}
	if random.IntN(2) == 0 {
		values["controlPlane"] = map[string]any{"replicas": 1 + 2*random.IntN(3)}
	}
	var pools []any
	for i := range random.IntN(4) {
		pool := map[string]any{"name": fmt.Sprintf("p%d", i)}
		if random.IntN(2) == 0 {
			pool["replicas"] = random.IntN(9)
		} else {
			low := random.IntN(4)
			pool["min"], pool["max"] = low, low+1+random.IntN(4)
		}
		pools = append(pools, pool)
	}
	if pools != nil {
		values["pools"] = pools
	}
	return values
}

// Whatever is in a file: no panic, no endless work, and places that are in the file.
func FuzzScreen(f *testing.F) {
	f.Add([]byte("a: &a [x]\nb: *a\n---\n# fleetctl:ignore syntax why\na: 1\na: 2\n"))
	f.Add([]byte(bomb()))
	f.Add([]byte("<<: {a: b}\n? [a, b]\n: c\n--- |\n text\n...\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		lines := strings.Count(string(content), "\n") + 1
		documents, findings := screen("a.yaml", content)
		ignores, more := parseIgnores("a.yaml", content, true)
		for _, found := range append(findings, more...) {
			if found.Line < 0 || found.Line > lines+1 {
				t.Errorf("%s is beyond %d lines", found, lines)
			}
		}
		file := &file{path: "a.yaml", content: content, documents: documents, ignores: ignores}
		file.settleIgnores()
		for _, d := range documents {
			d.file = file
			if d.start < 1 || d.start > lines || d.end > lines {
				t.Errorf("document %d from %d to %d of %d lines", d.index, d.start, d.end, lines)
			}
			locate(d.node, "a[0].b")
			unapplied(d)
		}
		_ = secretsIn(file)
		_ = objectSecrets(&tree{}, file)
	})
}

// The examples are what they promise: nothing is wrong with them.
func TestExamplesAreValid(t *testing.T) {
	known := knownKinds(t)
	folders, err := filepath.Glob("../../examples/*/fleet.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no examples (%v)", err)
	}
	for _, name := range folders {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			result, err := Run(t.Context(), Options{Dir: filepath.Dir(name), known: known, Offline: true, CacheDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			report(t, slices.DeleteFunc(result.Findings, func(f diag.Finding) bool {
				// The clouds' CRDs are in no module of ours, and those of image automation come with the Flux that init installs.
				return f.Rule == RuleMissingCRDs || f.Rule == RuleUnknownKind && strings.Contains(f.Summary, "image.toolkit.fluxcd.io/")
			}))
			if result.Clusters == 0 || result.Objects < 5*result.Clusters {
				t.Errorf("%d clusters and %d objects", result.Clusters, result.Objects)
			}
		})
	}
}
