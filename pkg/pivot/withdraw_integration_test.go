//go:build integration

package pivot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

const awsCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: awsclusters.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/provider: infrastructure-aws}}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AWSCluster, listKind: AWSClusterList, plural: awsclusters, singular: awscluster}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// withdrawBed is a target with clusters in AWS, whose provider is what play does.
type withdrawBed struct {
	*testing.T
	target *Target
	of     credentials.Replaceable
}

func newWithdrawBed(t *testing.T) *withdrawBed {
	t.Helper()
	c, _ := kubetest.Start(t)
	ctx := t.Context()
	kubetest.ClusterAPI(t, c, "clusters", "machines")
	if _, err := kubetest.ApplyYAML(ctx, c, []byte(awsCRD), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitEstablished(ctx, "awsclusters.infrastructure.cluster.x-k8s.io"); err != nil {
		t.Fatal(err)
	}
	manager, err := capi.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &withdrawBed{
		T: t, of: credentials.AllReplaceable()[0],
		target: &Target{handedTarget: &handedTarget{Name: "platform"}, client: c, manager: manager},
	}
}

// makes adds a Cluster with an AWSCluster whose network the provider calls ready; more are further fields of the AWSCluster's spec.
func (b *withdrawBed) makes(ctx context.Context, name, more string) {
	b.Helper()
	manifest := strings.ReplaceAll(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: NAME, namespace: default}, spec:
  {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: NAME}}}
---
{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSCluster, metadata: {name: NAME, namespace: default,
  labels: {cluster.x-k8s.io/cluster-name: NAME}}, spec: {region: eu-central-1MORE}}
`, "NAME", name)
	manifest = strings.ReplaceAll(manifest, "MORE", more)
	if _, err := kubetest.ApplyYAML(ctx, b.target.client, []byte(manifest), kube.ApplyOptions{}); err != nil {
		b.Fatal(err)
	}
	b.says(ctx, name, "True", "")
}

// says writes the condition, as the provider does.
func (b *withdrawBed) says(ctx context.Context, name, status, message string) {
	b.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: infrastructure, Version: "v1beta2", Kind: "AWSCluster"})
	if err := b.target.client.Get(ctx, kube.Key{Namespace: "default", Name: name}, obj); err != nil {
		b.Fatal(err)
	}
	obj.Object["status"] = map[string]any{"ready": true, "conditions": []any{
		map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "VpcReady", "status": status, "message": message},
	}}
	if err := b.target.client.Status().Update(ctx, obj); err != nil {
		b.Fatal(err)
	}
}

// plays says status and message of each of the named clusters once its condition is gone.
func (b *withdrawBed) plays(ctx context.Context, status, message string, names ...string) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		kind := schema.GroupVersionKind{Group: infrastructure, Version: "v1beta2", Kind: "AWSCluster"}
		for _, name := range names {
			key := kube.Key{Namespace: "default", Name: name}
			err := b.target.client.WaitFor(ctx, kind, key, func(obj *unstructured.Unstructured) (bool, error) {
				return meta.FindStatusCondition(kube.Conditions(obj), b.of.Condition) == nil, nil
			})
			if err != nil {
				b.Error(err)
				return
			}
			b.says(ctx, name, status, message)
		}
	}()
	return func() { <-done }
}

// The credential stays off where the provider tells of an answer for each identity, and comes back where it does not, or is interrupted.
func TestWithdraw(t *testing.T) {
	b := newWithdrawBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := newProof(ctx, b.target, b.of); err == nil || !strings.Contains(err.Error(), "no cluster of this cloud") {
		t.Errorf("without a cluster: %v", err)
	}
	b.makes(ctx, "a", "")
	b.makes(ctx, "b", "") // the same identity: one of the two is enough
	b.makes(ctx, "c", ", identityRef: {kind: AWSClusterRoleIdentity, name: c}")
	b.makes(ctx, "broken", ", identityRef: {kind: AWSClusterRoleIdentity, name: broken}")
	b.says(ctx, "broken", "False", "before all this")
	for name, tc := range map[string]struct {
		status  string
		bounded time.Duration // from when the provider has answered
		back    bool
		says    string
	}{
		"reaches the cloud": {status: "True"},
		"does not":          {status: "False", bounded: 2 * time.Second, back: true, says: "no EC2 IMDS role found"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newProof(ctx, b.target, b.of)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.objects) != 2 {
				t.Fatalf("it is to prove it by %d objects", len(p.objects))
			}
			var did []string
			run, interrupt := context.WithCancel(ctx)
			defer interrupt()
			played := b.plays(ctx, tc.status, "no EC2 IMDS role found", "a", "c")
			go func() {
				played()
				if tc.bounded > 0 {
					time.AfterFunc(tc.bounded, interrupt)
				}
			}()
			err = p.without(run,
				func(context.Context) error { did = append(did, "off"); return nil },
				func(ctx context.Context) error { did = append(did, "back"); return ctx.Err() })
			played()
			want := "off"
			if tc.back {
				want = "off back"
			}
			if got := strings.Join(did, " "); got != want {
				t.Errorf("it did %s", got)
			}
			if tc.back != (err != nil) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("it says %v", err)
			}
			b.says(ctx, "a", "True", "")
			b.says(ctx, "c", "True", "")
		})
	}
	p, err := newProof(ctx, b.target, b.of)
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the manager does not start")
	back := errors.New("nor now")
	err = p.without(ctx, func(context.Context) error { return failed }, func(context.Context) error { return back })
	if !errors.Is(err, failed) || !errors.Is(err, back) {
		t.Errorf("an installation that fails: %v", err)
	}
}

// Only a target whose nodes are all machines of the provider's cloud can do without the credential.
func TestWithdrawOnlyInItsCloud(t *testing.T) {
	b := newWithdrawBed(t)
	check := func(says string) {
		t.Helper()
		err := onItsCloud(t.Context(), b.target, b.of)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("it says %v", err)
		}
	}
	check("no nodes")
	for _, each := range []struct{ name, id, says string }{
		{"one", "aws:///eu-central-1a/i-1", ""}, {"two", "kind://podman/x/y", "node two is not"},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: each.name}, Spec: corev1.NodeSpec{ProviderID: each.id}}
		if err := b.target.client.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		check(each.says)
	}
}
