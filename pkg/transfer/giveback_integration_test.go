//go:build integration

package transfer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

const released = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec:
  group: helm.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: HelmRelease, listKind: HelmReleaseList, plural: helmreleases, singular: helmrelease}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: fleetctl-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: shop, name: shop}, spec: {interval: 1h}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: shop, name: shop, labels: {helm.toolkit.fluxcd.io/name: shop, helm.toolkit.fluxcd.io/namespace: shop}}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TestCluster, name: shop}}
`

// A transfer that the hand-over refuses before its first journal leaves the source's Flux as it was. Where it cannot tell whether another
// run has begun, or while the source is in the middle of something else, it says which command resumes Flux.
func TestRefusedTransferGivesFluxBack(t *testing.T) {
	ctx := t.Context()
	source, _ := kubetest.Start(t)
	target, _ := kubetest.Start(t)
	for _, client := range []*kube.Client{source, target} {
		kubetest.ClusterAPI(t, client, "clusters", "machines")
		if _, err := kubetest.ApplyYAML(ctx, client, []byte(released), kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(t *testing.T) *transfer {
		x := transferOf(t, &heard{Reporter: progress.Discard})
		x.from.client, x.to.client, x.release = source, target, x.key
		return x
	}
	suspended := func() bool {
		t.Helper()
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("helm.toolkit.fluxcd.io/v2")
		object.SetKind("HelmRelease")
		if err := source.Get(ctx, kube.Key{Namespace: "shop", Name: "shop"}, object); err != nil {
			t.Fatal(err)
		}
		is, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
		if marked := len(object.GetAnnotations()) > 0; marked != is {
			t.Errorf("suspended: %t, annotations %v", is, object.GetAnnotations())
		}
		return is
	}
	if err := begin(t).run(ctx); err == nil || !strings.Contains(err.Error(), "already exists at the target") {
		t.Errorf("with the Cluster at both sides: %v", err)
	}
	if suspended() {
		t.Error("after a refusal, the source's Flux is still suspended")
	}

	const resumes = "`fleetctl cluster transfer shop --to second --abort` resumes its Flux"
	ours := &handover.Journal{Role: handover.RoleSource, Phase: handover.PhasePlanned, Select: []string{"shop/shop"}}
	others := &handover.Journal{Role: handover.RoleSource, Phase: handover.PhasePlanned, Select: []string{"web/web"}}
	done := &handover.Journal{Role: handover.RoleSource, ID: "some", Phase: handover.PhaseReleased, Select: []string{"shop/shop"}}
	for name, c := range map[string]struct {
		source, target *handover.Journal
		before         *handover.Journal // of the source, when the run began
		lost           bool              // the target does not answer
		stays, hints   bool
	}{
		"nothing has begun":                       {},
		"an earlier transfer is over":             {source: done, before: done},
		"another machine has begun it":            {source: ours, stays: true},
		"another machine has finished it":         {source: done, stays: true},
		"only the target's journal is left":       {target: ours, stays: true},
		"another cluster is in the middle of one": {source: others, stays: true, hints: true},
		"another cluster comes to the target":     {target: others},
		"the target does not answer":              {lost: true, stays: true, hints: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := begin(t)
			x.here = c.before
			if _, err := flux.NewSystem(source).LetGo(ctx, x.release, capi.KubeconfigSecret(x.key)); err != nil {
				t.Fatal(err)
			}
			for client, journal := range map[*kube.Client]*handover.Journal{source: c.source, target: c.target} {
				keepJournal(t, client, journal)
			}
			if c.lost {
				x.to.client = silent(t)
			}
			refused := errors.New("it is refused")
			err := x.giveBack(ctx, refused)
			if !errors.Is(err, refused) || strings.Contains(diag.Hint(err), resumes) != c.hints {
				t.Errorf("got %v (%s)", err, diag.Hint(err))
			}
			if is := suspended(); is != c.stays {
				t.Errorf("suspended: %t, want %t", is, c.stays)
			}
		})
	}

	keepJournal(t, source, nil)
	if err := flux.NewSystem(source).TakeBack(ctx, "shop", kube.Key{Namespace: "shop", Name: "shop-kubeconfig"}); err != nil {
		t.Fatal(err)
	}
	x := begin(t)
	x.release = kube.Key{} // as in a run that continues
	if err := x.quietAgain(ctx); err != nil || !suspended() {
		t.Errorf("before the commit, the source's Flux is not suspended again: %v", err)
	}
}

// silent returns a client of an address at which nobody answers.
func silent(t *testing.T) *kube.Client {
	t.Helper()
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	client, err := kube.New([]byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '"+away.URL+"'}}], "+
		"contexts: [{name: a, context: {cluster: a}}], current-context: a}"), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// keepJournal makes j the journal of a management cluster; nil removes the journal.
func keepJournal(t *testing.T, client *kube.Client, j *handover.Journal) {
	t.Helper()
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}}
	if err := client.WithWatch.Delete(t.Context(), kept.DeepCopy()); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
	if j == nil {
		return
	}
	written := *j
	written.FormatVersion, written.ID = "1", "some"
	content, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	kept.Data = map[string][]byte{"journal": content}
	if err := client.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
}
