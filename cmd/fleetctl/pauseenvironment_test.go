package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// gotkSync is what init writes of the repository that Flux follows.
const gotkSync = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/acme/fleet.git", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./providers/docker/v1/mgmt, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`

// pausedFleet is a fleet whose environment dev has clusters with and without a Flux of their own, a feature, one more of a single cluster,
// and a tenant.
func pausedFleet(t *testing.T) *sequence {
	t.Helper()
	s := &sequence{T: t, dir: filepath.Join(t.TempDir(), "fleet"), home: t.TempDir()}
	s.must("init", "--scaffold", "--host", "embedded", "--kubernetes-version", "v1.35.2", "--provider", "docker", "--management", "mgmt")
	at := layout.Layout{Cloud: "docker", Generation: "v1"}
	initialised(t, s.dir, at, "dev")
	sync, calico := filepath.Join(s.dir, filepath.FromSlash(at.SyncFile())), filepath.Join(s.home, "network.yaml")
	const components = "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(sync), 0o755), os.WriteFile(sync, []byte(gotkSync), 0o600),
		os.WriteFile(filepath.Join(filepath.Dir(sync), layout.ComponentsFile), []byte(components), 0o600),
		os.WriteFile(calico, []byte(strings.ReplaceAll(network, "%d", "1400")), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.git("init", "--quiet", "--initial-branch", "main")
	s.git("config", "user.name", "Sequence")
	s.git("config", "user.email", "sequence@example.com")
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message", "Begin")
	for _, line := range []string{
		"cni add calico --from " + calico, "cluster add own --flavour docker --environment dev --flux own",
		"cluster add far --flavour docker --environment dev --flux remote", "feature add web", "feature enable web --environment dev",
		"feature add gpu", "feature enable gpu --cluster own", "tenant add bank --environment dev",
	} {
		s.must(append(strings.Fields(line), "--commit")...)
	}
	return s
}

// heldBack fails the test for each object of Flux that would carry a change in Git to the clusters of dev, and returns the names of those
// that are suspended.
func (s *sequence) heldBack(when string) []string {
	s.Helper()
	var result struct {
		Objects []struct {
			Environment string
			Targets     []string
			Owner       render.Owner
			Object      struct {
				APIVersion, Kind string
				Metadata         struct {
					Name, Namespace string
					Labels          map[string]string
				}
				Spec struct {
					Suspend   bool
					SourceRef struct{ Kind, Name string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(s.must("render", "-o", "json")), &result); err != nil {
		s.Fatal(err)
	}
	var held []string
	for _, o := range result.Objects {
		group, _, _ := strings.Cut(o.Object.APIVersion, "/")
		part := o.Object.Metadata.Labels["fleetctl.dev/flux"]
		name := o.Object.Kind + " " + o.Object.Metadata.Namespace + "/" + o.Object.Metadata.Name
		switch {
		case !strings.HasSuffix(group, ".toolkit.fluxcd.io") || o.Owner.Name == "flux-system":
			continue // what the management cluster has for itself, the Kustomization of dev among it
		case o.Object.Spec.Suspend:
			held = append(held, name)
			continue
		case part == "sync" || part == "source" || part == "apps":
			continue // they carry the pause to what they apply
		case len(o.Targets) > 0 && o.Object.Kind == "Kustomization" && o.Object.Spec.SourceRef.Name == "flux-system":
			continue // the source on that cluster is suspended
		}
		s.Errorf("%s: %s, which %s applies to %v, goes on", when, name, o.Owner, o.Targets)
	}
	slices.Sort(held)
	return slices.Compact(held)
}

// A pause by a commit holds all that would carry a change in Git to the clusters of an environment: what is there and what comes later, and
// the next promotion. Resuming it gives the bytes back.
func TestPausedEnvironment(t *testing.T) {
	for channel, test := range map[string]struct {
		add    string
		source string
	}{
		"main":    {"", "GitRepository flux-system/flux-system"},
		"next":    {"channel add next --branch next --environment dev", "GitRepository flux-system/flux-system"},
		"release": {"channel add release --environment dev", "GitRepository flux-system/flux-system"},
	} {
		t.Run(channel, func(t *testing.T) {
			t.Parallel()
			s := pausedFleet(t)
			if test.add != "" {
				s.must(append(strings.Fields(test.add), "--commit")...)
			}
			if channel == "release" {
				s.must("promote", "--skip-health", "--commit")
			}
			before := s.files()
			s.must("environment", "pause", "dev", "--commit")
			s.valid("paused")
			want := []string{
				test.source, "HelmChart flux-system/dev-docker", "HelmRelease far/far", "HelmRelease own/own", "Kustomization far/far-cni",
				"Kustomization far/feature-web", "Kustomization far/feature-web-non-namespaced", "Kustomization far/tenant-bank",
				"Kustomization flux-system/apps", "Kustomization own/feature-gpu", "Kustomization own/own-cni", "Kustomization own/own-flux",
			}
			held := s.heldBack("paused")
			for _, name := range want {
				if !slices.Contains(held, name) {
					t.Errorf("%s is not suspended, but these are: %q", name, held)
				}
			}
			s.must("environment", "resume", "dev", "--commit")
			if diff := cmp.Diff(before, s.files()); diff != "" {
				t.Errorf("paused and resumed (-want +got)\n%s", diff)
			}

			s.must("environment", "pause", "dev", "--commit")
			paused := s.files()
			for _, line := range []string{
				"cluster add late --flavour docker --environment dev", "feature add logs", "feature enable logs --environment dev",
				"tenant add shop --environment dev",
			} {
				s.must(append(strings.Fields(line), "--commit")...)
			}
			if channel == "release" {
				s.must("promote", "--skip-health", "--commit")
			}
			held = s.heldBack("with what came later")
			for _, name := range []string{"HelmRelease late/late", "Kustomization far/feature-logs", "Kustomization far/tenant-shop"} {
				if !slices.Contains(held, name) {
					t.Errorf("%s is not suspended, but these are: %q", name, held)
				}
			}
			file := filepath.Join(s.dir, "providers/docker/v1/mgmt/clusters-dev.yaml")
			if after := s.files(); after[file] != paused[file] {
				t.Errorf("what came later has changed %s", file)
			}
			if code, _, stderr := s.run("cluster", "remove", "own", "--yes", "--commit"); code != 1 ||
				!strings.Contains(stderr, "environment dev of cluster own is paused: Flux would not delete it, only forget it") {
				t.Errorf("remove a cluster: exit %d\n%s", code, stderr)
			}
			s.must("environment", "resume", "dev", "--commit")
			if after := s.files(); after[file] != before[file] {
				t.Error(cmp.Diff(before[file], after[file]))
			}
			s.valid("resumed")
		})
	}
}

// An environment that is paused stays so when it begins to follow a channel, and its file is in the end as without the pause.
func TestPausedEnvironmentChangesChannel(t *testing.T) {
	s, plain := pausedFleet(t), pausedFleet(t)
	s.must("environment", "pause", "dev", "--commit")
	for _, line := range []string{"channel add release --environment dev --commit", "promote --skip-health --commit"} {
		s.must(strings.Fields(line)...)
		plain.must(strings.Fields(line)...)
		s.heldBack(line)
	}
	s.must("environment", "resume", "dev", "--commit")
	of := func(s *sequence) map[string]string {
		files := map[string]string{}
		for name, content := range s.files() {
			files[strings.TrimPrefix(name, s.dir)] = content
		}
		return files
	}
	want := of(plain)
	maps.DeleteFunc(want, func(name, _ string) bool { return !strings.Contains(name, "clusters-dev") })
	for name, content := range want {
		if diff := cmp.Diff(content, of(s)[name]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// pausedNow are the objects that a pause with --now suspends, as text.
func (s *sequence) pausedNow(objects func(r *fleetrepo.Repo) ([]fleetrepo.FluxObject, error)) []string {
	s.Helper()
	r, err := fleetrepo.Open(s.dir)
	if err != nil {
		s.Fatal(err)
	}
	all, err := objects(r)
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, o := range all {
		text := o.Kind + " " + o.Namespace + "/" + o.Name
		if o.Cluster != "" {
			text += " on " + o.Cluster
		}
		if o.Below {
			text += " and below"
		}
		out = append(out, text)
	}
	return out
}

func TestPausedAtOnce(t *testing.T) {
	s := pausedFleet(t)
	for _, line := range []string{
		"feature add metrics --chart oci://registry.example.com/charts/metrics --version 1.2.3", "feature enable metrics --environment dev",
		"feature enable metrics --on-management", "feature add logs --chart https://charts.example.com/logs --version 1.2.3",
		"feature enable logs --cluster own",
	} {
		s.must(append(strings.Fields(line), "--commit")...)
	}
	feature := func(name string) func(r *fleetrepo.Repo) ([]fleetrepo.FluxObject, error) {
		return func(r *fleetrepo.Repo) ([]fleetrepo.FluxObject, error) {
			return r.PausedByFeature(name, fleetrepo.FeatureOptions{})
		}
	}
	for name, test := range map[string]struct {
		objects func(r *fleetrepo.Repo) ([]fleetrepo.FluxObject, error)
		want    []string
	}{
		"environment": {
			func(r *fleetrepo.Repo) ([]fleetrepo.FluxObject, error) { return r.PausedByEnvironment("dev") },
			[]string{
				"Kustomization flux-system/clusters-dev and below", "GitRepository flux-system/flux-system on own",
				"Kustomization flux-system/apps on own",
			},
		},
		"a feature without a chart": {feature("gpu"), []string{"Kustomization own/feature-gpu-non-namespaced", "Kustomization own/feature-gpu"}},
		"a feature of a single cluster": {feature("logs"), []string{
			"Kustomization own/feature-logs-non-namespaced", "Kustomization own/feature-logs", "HelmRelease flux-system/logs on own",
		}},
		"a feature": {feature("metrics"), []string{
			"Kustomization far/feature-metrics-non-namespaced", "Kustomization far/feature-metrics",
			"Kustomization flux-system/feature-metrics-non-namespaced on own", "Kustomization flux-system/feature-metrics on own",
			"HelmRelease flux-system/metrics on own",
			"Kustomization flux-system/feature-metrics-non-namespaced", "Kustomization flux-system/feature-metrics",
			"HelmRelease flux-system/metrics",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, s.pausedNow(test.objects)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Until its first promotion a channel of tags has no source, and its environments follow the channel that they followed before.
func TestChannelPausedAtOnce(t *testing.T) {
	s := pausedFleet(t)
	channel := func(name string) func(r *fleetrepo.Repo) ([]fleetrepo.FluxObject, error) {
		return func(r *fleetrepo.Repo) ([]fleetrepo.FluxObject, error) { return r.PausedByChannel(name) }
	}
	both := []string{"GitRepository flux-system/flux-system", "GitRepository flux-system/flux-system on own"}
	s.must("channel", "add", "release", "--environment", "dev", "--commit")
	if diff := cmp.Diff(both, s.pausedNow(channel("main"))); diff != "" {
		t.Errorf("main before the promotion (-want +got)\n%s", diff)
	}
	code, _, stderr := s.run("channel", "pause", "release", "--now")
	if code != 1 || !strings.Contains(stderr, "channel release has no source yet") {
		t.Errorf("release before the promotion: exit %d\n%s", code, stderr)
	}
	s.must("promote", "--skip-health", "--commit")
	if diff := cmp.Diff(both[:1], s.pausedNow(channel("main"))); diff != "" {
		t.Errorf("main after the promotion (-want +got)\n%s", diff)
	}
	want := []string{"GitRepository flux-system/release", both[1]}
	if diff := cmp.Diff(want, s.pausedNow(channel("release"))); diff != "" {
		t.Errorf("release after the promotion (-want +got)\n%s", diff)
	}
}
