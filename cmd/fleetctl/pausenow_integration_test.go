//go:build integration

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// nowBed is a fleet repo, and an API server with the kinds of Flux.
type nowBed struct {
	*testing.T
	client *kube.Client
	dir    string
	flags  []string
}

func newNowBed(ctx context.Context, t *testing.T) *nowBed {
	t.Helper()
	c, kubeconfig := kubetest.Start(t)
	b := &nowBed{T: t, client: c, dir: filepath.Join(t.TempDir(), "fleet")}
	file := filepath.Join(t.TempDir(), "admin")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	b.flags = []string{"-C", b.dir, "--state-dir", t.TempDir(), "--cache-dir", t.TempDir(), "--no-color"}
	for _, args := range []string{
		"init --scaffold --provider docker --host kind --management mgmt",
		"feature add web", "cluster add sim --flavour in-memory --environment dev", "feature enable web --environment dev",
		"feature enable web --on-management", "channel add next --branch next",
	} {
		if code, stdout, stderr := b.run(strings.Fields(args)...); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		if strings.HasPrefix(args, "init") {
			at := layout.Layout{Cloud: "docker", Generation: "v1"}
			initialised(t, b.dir, at, "dev")
			sync := filepath.Join(b.dir, filepath.FromSlash(at.SyncFile()))
			if err := os.MkdirAll(filepath.Dir(sync), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(sync, []byte(gotkSync), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.flags = append(b.flags, "--kubeconfig", file)
	for kind, at := range map[string]string{
		"Kustomization": "kustomize.toolkit.fluxcd.io/v1", "GitRepository": "source.toolkit.fluxcd.io/v1",
		"HelmRelease": "helm.toolkit.fluxcd.io/v2", "HelmChart": "source.toolkit.fluxcd.io/v1",
	} {
		group, version, _ := strings.Cut(at, "/")
		plural := strings.TrimSuffix(strings.ToLower(kind), "y")
		if plural += "s"; kind == "GitRepository" {
			plural = "gitrepositories"
		}
		crd := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ` +
			plural + `.` + group + `}, spec: {group: ` + group + `, scope: Namespaced, names: {plural: ` + plural + `, kind: ` + kind + `},
  versions: [{name: ` + version + `, served: true, storage: true, subresources: {status: {}},
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
		if _, err := kubetest.ApplyYAML(ctx, c, []byte(crd), kube.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *nowBed) run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cmd.Main(b.Context(), ui.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, append(args, b.flags...))
	return code, out.String(), errs.String()
}

// now runs a command that pauses or resumes at once, and returns what it says of each object.
func (b *nowBed) now(code int, args ...string) []management.Switched {
	b.Helper()
	got, stdout, stderr := b.run(append(args, "--now", "-o", "json")...)
	if got != code {
		b.Fatalf("%s: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	var result struct{ Objects []management.Switched }
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || len(result.Objects) == 0 {
		b.Fatalf("%s: %v\n%s", args, err, stdout)
	}
	return result.Objects
}

// apply applies an object as Flux does, from what Git has; suspend is nil if Git does not say. by is the Kustomization that applies it, if
// that matters.
func (b *nowBed) apply(o management.Switched, suspend any, by ...kube.Key) kube.Ref {
	b.Helper()
	labels := map[string]any{"team": "a"}
	for _, key := range by {
		labels[flux.AppliedBy], labels["kustomize.toolkit.fluxcd.io/namespace"] = key.Name, key.Namespace
	}
	ref, err := flux.RefTo(o.Kind, kube.Key{Namespace: o.Namespace, Name: o.Name})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := kubetest.ApplyYAML(b.Context(), b.client, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+o.Namespace+"}}"),
		kube.ApplyOptions{FieldManager: "test"}); err != nil {
		b.Fatal(err)
	}
	spec := map[string]any{"interval": "1m"}
	if suspend != nil {
		spec["suspend"] = suspend
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"namespace": o.Namespace, "name": o.Name, "labels": labels, "annotations": map[string]any{"of": "git"},
		}, "spec": spec,
	}}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	if err := b.client.WithWatch.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("kustomize-controller"),
		client.ForceOwnership); err != nil {
		b.Fatal(err)
	}
	return ref
}

// object is an object without what every write changes, and without the request to reconcile, which Flux answers once.
func (b *nowBed) object(ref kube.Ref) map[string]any {
	b.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	if err := b.client.Get(b.Context(), ref.Key, obj); err != nil {
		b.Fatal(err)
	}
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "reconcile.fluxcd.io/requestedAt")
	return obj.Object
}

// saysOf is what status says of an object.
func (b *nowBed) saysOf(o management.Switched) string {
	b.Helper()
	_, stdout, stderr := b.run("status")
	for line := range strings.Lines(stdout) {
		if strings.Contains(line, o.Kind+" "+o.Namespace+"/"+o.Name) {
			return line
		}
	}
	b.Fatalf("status says nothing of %s\n%s%s", o.Name, stdout, stderr)
	return ""
}

// TestPauseNow pauses and resumes a cluster, a feature, an environment and a channel on a real API server.
func TestPauseNow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b := newNowBed(ctx, t)
	for _, what := range [][]string{{"cluster", "sim"}, {"feature", "web"}, {"environment", "dev"}, {"channel", "next"}} {
		t.Run(what[0], func(t *testing.T) {
			b := &nowBed{T: t, client: b.client, dir: b.dir, flags: b.flags}
			pause, resume := []string{what[0], "pause", what[1]}, []string{what[0], "resume", what[1]}
			objects := b.now(diag.ExitNotReady, pause...)
			var before []map[string]any
			var refs []kube.Ref
			here := objects[:0:0]
			for _, o := range objects {
				if !o.Absent {
					t.Errorf("nobody has made %+v", o)
				}
				if o.Cluster == "" { // others stand on a workload cluster
					here = append(here, o)
					refs = append(refs, b.apply(o, nil))
					before = append(before, b.object(refs[len(refs)-1]))
				}
			}
			check := func(when string, result []management.Switched, changed bool) {
				t.Helper()
				for _, o := range result {
					if o.Changed != changed || o.Absent || o.InGit {
						t.Errorf("%s: %+v", when, o)
					}
				}
			}
			check("pause", b.now(0, pause...), true)
			check("pause again", b.now(0, pause...), false)
			for i, o := range here {
				b.apply(o, nil) // Flux has applied Git once more
				if suspended, _, _ := unstructured.NestedBool(b.object(refs[i]), "spec", "suspend"); !suspended {
					t.Errorf("%s is not suspended", o.Name)
				}
				if line := b.saysOf(o); !strings.Contains(line, "suspended, not in Git") {
					t.Errorf("status says %q", line)
				}
			}
			check("resume", b.now(0, resume...), true)
			check("resume again", b.now(0, resume...), false)
			for i, ref := range refs {
				if diff := cmp.Diff(before[i], b.object(ref)); diff != "" {
					t.Errorf("paused and resumed, %s is another object (-want +got)\n%s", ref, diff)
				}
			}

			// A command that was killed has paused the first object alone: run again, it pauses the others. The pause of another object,
			// by somebody else, stays all the time.
			system := flux.NewSystem(b.client)
			other := b.apply(management.Switched{Kind: "Kustomization", Namespace: "flux-system", Name: "of-somebody-else"}, nil)
			if _, err := system.SetSuspended(ctx, []kube.Ref{other, refs[0]}, true); err != nil {
				t.Fatal(err)
			}
			theirs := b.object(other)
			again := b.now(0, pause...)
			check("the first, again", again[:1], false)
			check("the others", again[1:], true)
			if _, err := system.SetSuspended(ctx, refs[:1], false); err != nil {
				t.Fatal(err)
			}
			again = b.now(0, resume...)
			check("the first, resumed again", again[:1], false)
			check("the others, resumed", again[1:], true)
			for i, ref := range refs {
				if diff := cmp.Diff(before[i], b.object(ref)); diff != "" {
					t.Errorf("after two kills %s is another object (-want +got)\n%s", ref, diff)
				}
			}
			if diff := cmp.Diff(theirs, b.object(other)); diff != "" {
				t.Errorf("what somebody else has paused is another object (-want +got)\n%s", diff)
			}

			// When Git says so, too, status says that, and resuming says that Git will have it back.
			b.now(0, pause...)
			b.apply(here[0], true)
			if line := b.saysOf(here[0]); !strings.Contains(line, "suspended") || strings.Contains(line, "not in Git") {
				t.Errorf("status says %q", line)
			}
			if result := b.now(0, resume...); !result[0].InGit || !result[0].Changed {
				t.Errorf("against Git: %+v", result[0])
			}
			b.apply(here[0], nil)
		})
	}
}

// With an environment all that its Kustomization has applied is paused, and what that has applied in its turn. What was suspended before
// stays so when the environment is resumed, whether Git or a person has suspended it.
func TestPauseEnvironmentNow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b := newNowBed(ctx, t)
	top, apps := kube.Key{Namespace: "flux-system", Name: "clusters-dev"}, kube.Key{Namespace: "far", Name: "far-apps"}
	object := func(kind, namespace, name string) management.Switched {
		return management.Switched{Kind: kind, Namespace: namespace, Name: name}
	}
	free := []kube.Ref{
		b.apply(object("Kustomization", top.Namespace, top.Name), nil),
		b.apply(object("HelmChart", "flux-system", "dev-docker"), nil, top),
		b.apply(object("HelmRelease", "far", "far"), nil, top),
		b.apply(object("Kustomization", "far", "far-cni"), nil, top),
		b.apply(object("Kustomization", apps.Namespace, apps.Name), nil, top),
		b.apply(object("Kustomization", "far", "common"), nil, apps),
		b.apply(object("Kustomization", "far", "feature-web"), nil, apps),
	}
	inGit := b.apply(object("HelmRelease", "held", "held"), true, top)
	byHand := b.apply(object("HelmRelease", "hand", "hand"), nil, top)
	if _, err := flux.NewSystem(b.client).SetSuspended(ctx, []kube.Ref{byHand}, true); err != nil {
		t.Fatal(err)
	}
	others := []kube.Ref{
		inGit, byHand, b.apply(object("HelmRelease", "prod", "prod"), nil, kube.Key{Namespace: "flux-system", Name: "clusters-prod"}),
		b.apply(object("Kustomization", "prod", "common"), nil),
	}
	states := func(refs []kube.Ref) (all []map[string]any) {
		for _, ref := range refs {
			all = append(all, b.object(ref))
		}
		return all
	}
	before, theirs := states(free), states(others)
	count := func(result []management.Switched) (changed int) {
		for _, o := range result {
			if o.Changed {
				changed++
			}
		}
		return changed
	}
	if result := b.now(0, "environment", "pause", "dev"); count(result) != len(free) {
		t.Errorf("%d objects are suspended, want %d: %+v", count(result), len(free), result)
	}
	for _, ref := range free {
		if suspended, _, _ := unstructured.NestedBool(b.object(ref), "spec", "suspend"); !suspended {
			t.Errorf("%s is not suspended", ref)
		}
	}
	_, stdout, _ := b.run("status")
	if !strings.Contains(stdout, "Kustomization flux-system/clusters-dev") ||
		strings.Contains(stdout, "HelmRelease far/far:") || !strings.Contains(stdout, "HelmRelease hand/hand:") {
		t.Errorf("status says\n%s", stdout)
	}
	if result := b.now(0, "environment", "pause", "dev"); count(result) != 0 {
		t.Errorf("paused again: %+v", result)
	}
	if result := b.now(0, "environment", "resume", "dev"); count(result) != len(free) {
		t.Errorf("%d objects are resumed, want %d: %+v", count(result), len(free), result)
	}
	if diff := cmp.Diff(before, states(free)); diff != "" {
		t.Errorf("paused and resumed (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(theirs, states(others)); diff != "" {
		t.Errorf("what is not paused with the environment (-want +got)\n%s", diff)
	}

	// Status knows the pause by a commit by what Flux applies then, and resuming on the cluster says that Git has it.
	flags := b.flags // they say how a management cluster is reached, which a commit does not need
	b.flags = []string{"--repo", b.dir}
	if code, _, stderr := b.run("environment", "pause", "dev"); code != 0 {
		t.Fatalf("pause in Git: exit %d\n%s", code, stderr)
	}
	b.flags = flags
	file, err := os.ReadFile(filepath.Join(b.dir, "providers/docker/v1/mgmt/clusters-dev.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fluxApplies := kube.ApplyOptions{FieldManager: "kustomize-controller", ForceConflicts: true}
	if _, err := kubetest.ApplyYAML(ctx, b.client, file, fluxApplies); err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ := b.run("status"); !strings.Contains(stdout, "environment dev is paused, in Git: it suspends 2 objects") {
		t.Errorf("status says\n%s", stdout)
	}
	_, _, stderr := b.run("environment", "resume", "dev", "--now")
	if !strings.Contains(stderr, "`fleetctl environment resume dev --commit` changes Git") {
		t.Errorf("resumed at once, against Git: %s", stderr)
	}
}

// A hand-over has suspended Flux's objects of its clusters, and recorded how they were. Nobody resumes them in the midst of it: Flux would
// change what is being handed over. The objects of other clusters are free, and so are these once the hand-over is finished.
func TestNoResumeInTheMidstOfAHandOver(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	b := newNowBed(ctx, t)
	release := b.now(3, "cluster", "resume", "sim")[0]
	ref := b.apply(release, nil)
	if _, err := flux.NewSystem(b.client).SetSuspended(ctx, []kube.Ref{ref}, true); err != nil {
		t.Fatal(err)
	}
	record := func(phase, cluster string) {
		t.Helper()
		journal := `{"formatVersion":"1","id":"x","role":"source","phase":"` + phase +
			`","source":{"name":"mgmt","uid":"u"},"target":{"name":"second","uid":"v"},"select":["` + cluster + `"]}`
		for _, object := range []string{
			`{apiVersion: v1, kind: Namespace, metadata: {name: fleetctl-system}}`,
			`{apiVersion: v1, kind: Secret, metadata: {namespace: fleetctl-system, name: fleetctl-handover}, ` +
				`stringData: {journal: '` + journal + `'}}`,
		} {
			if _, err := kubetest.ApplyYAML(ctx, b.client, []byte(object), kube.ApplyOptions{FieldManager: "test"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	record("fenced", release.Namespace+"/sim")
	code, _, stderr := b.run("cluster", "resume", "sim", "--now")
	if code != 1 || !strings.Contains(stderr, "in the middle of the transfer of "+release.Namespace+"/sim") ||
		!strings.Contains(stderr, "fleetctl cluster transfer sim --abort") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	record("fenced", "other/other")
	if got := b.now(0, "cluster", "resume", "sim"); !got[0].Changed {
		t.Errorf("while another cluster is handed over: %+v", got)
	}
	record("released", release.Namespace+"/sim")
	if got := b.now(0, "cluster", "pause", "sim"); !got[0].Changed {
		t.Errorf("afterwards: %+v", got)
	}
}
