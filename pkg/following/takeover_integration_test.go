//go:build integration

package following_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// Taking over deletes nothing: what was applied before is kept, and what works on others stands still.
func TestTakeOverKeepsWhatWasApplied(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	e.FollowSomething(ctx, t, "https://git.example.com/theirs.git", "main", "clusters/prod")
	s, err := e.Take(ctx, t, func(o *session.Options) { o.TakeOverFlux = true })
	if err != nil {
		t.Fatal(err)
	}
	p := &following.Pushed{Session: s, Access: &repoaccess.Access{
		Session:  s,
		Endpoint: &repoaccess.Endpoint{URL: e.Git.URL, Display: e.Git.URL}, Home: e.Client,
	}}
	system := flux.NewSystem(e.Client)
	kept, err := p.Follow(ctx, e.Client, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap default/child", "ConfigMap default/theirs", "Kustomization flux-system/clusters"}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	for _, name := range []string{"theirs", "child"} {
		object := &corev1.ConfigMap{}
		if err := e.Client.Get(ctx, kube.Key{Namespace: "default", Name: name}, object); err != nil ||
			object.Annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
			t.Errorf("%s: %v, %v", name, object.Annotations, err)
		}
	}
	if _, err := system.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	for name, suspended := range map[string]bool{"flux-system": false, "clusters": true} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
		object.SetKind("Kustomization")
		if err := e.Client.Get(ctx, kube.Key{Namespace: "flux-system", Name: name}, object); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); got != suspended {
			t.Errorf("%s: suspended %t", name, got)
		}
		if prune, _, _ := unstructured.NestedBool(object.Object, "spec", "prune"); name == "flux-system" && prune {
			t.Error("it prunes from the start")
		}
	}
	now, err := system.Following(ctx)
	if err != nil || now.URL != e.Git.URL {
		t.Errorf("it follows %s, %v", now, err)
	}
	if there, err := ownership.ReadClaim(ctx, e.Client); err != nil || !there.Confirmed {
		t.Errorf("%+v, %v", there, err)
	}
}
