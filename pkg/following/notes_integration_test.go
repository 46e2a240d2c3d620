//go:build integration

package following_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// What keeps Flux from its work, or undoes it, is told, and nothing else is.
func TestNotes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	notes := func() []following.Note {
		t.Helper()
		found, err := following.Find(ctx, nil, e.Client, nil, following.View{})
		if err != nil {
			t.Fatal(err)
		}
		notes, err := found.Notes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return notes
	}
	if got := notes(); len(got) != 0 {
		t.Errorf("without Flux and other tools: %+v", got)
	}
	e.FollowSomething(ctx, t, "https://git.example.com/ours.git", "main", "clusters/prod")
	if got := notes(); len(got) != 0 {
		t.Errorf("with a Flux that works: %+v", got)
	}
	for plural, kind := range map[string]string{
		"applications.argoproj.io": "Application", "gitrepos.fleet.cattle.io": "GitRepo", "apps.kappctrl.k14s.io": "App",
	} {
		name, group, _ := strings.Cut(plural, ".")
		e.Apply(ctx, t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: `+plural+`}, spec: {group: `+
			group+`, scope: Namespaced, names: {plural: `+name+`, kind: `+kind+`}, versions: [{name: v1alpha1, served: true, storage: true, `+
			`schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	}
	// These apply to other clusters than this one.
	e.Apply(ctx, t, "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: far, namespace: default}, "+
		"spec: {source: {repoURL: 'https://git.example.com/far.git'}, destination: {server: 'https://far.example.com'}}}")
	e.Apply(ctx, t, "{apiVersion: fleet.cattle.io/v1alpha1, kind: GitRepo, metadata: {name: far, namespace: default}, spec: {repo: far}}")
	e.Apply(ctx, t, "{apiVersion: kappctrl.k14s.io/v1alpha1, kind: App, metadata: {name: far, namespace: default}, "+
		"spec: {cluster: {kubeconfigSecretRef: {name: far}}}}")
	if got := notes(); len(got) != 0 {
		t.Errorf("with tools that apply elsewhere: %+v", got)
	}
	e.Apply(ctx, t, "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: here, namespace: default}, "+
		"spec: {sources: [{repoURL: 'https://git.example.com/apps.git'}], destination: {server: 'https://kubernetes.default.svc'}}}")
	e.Apply(ctx, t, "{apiVersion: kappctrl.k14s.io/v1alpha1, kind: App, metadata: {name: here, namespace: default}, spec: {}}")
	e.Apply(ctx, t, "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system}, "+
		"spec: {url: 'https://git.example.com/ours.git', suspend: true}}")
	e.Apply(ctx, t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: flux-system, namespace: flux-system}, "+
		"spec: {path: ./clusters/prod, suspend: true, sourceRef: {kind: GitRepository, name: flux-system}}}")
	got := notes()
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	for i, wants := range [][]string{
		{"suspended ", "GitRepository flux-system/flux-system", "Kustomization flux-system/flux-system"},
		{"Application default/here of Argo CD (https://git.example.com/apps.git)", "App default/here of kapp-controller"},
	} {
		for _, want := range wants {
			if !strings.Contains(got[i].Text, want) {
				t.Errorf("%q does not say %q", got[i].Text, want)
			}
		}
		if got[i].Hint == "" {
			t.Errorf("%q has no hint", got[i].Text)
		}
	}
	if strings.Count(got[0].Hint, "kubectl -n flux-system patch") != 2 {
		t.Errorf("the hint does not resume both: %s", got[0].Hint)
	}
}
