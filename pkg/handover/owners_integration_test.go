//go:build integration

package handover

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// The record of a workload cluster's owner reveals that a snapshot is older than the last hand-over. It never stands in the way of a
// snapshot that is newer.
func TestOwnerRecord(t *testing.T) {
	_, kubeconfig := kubetest.Start(t)
	ctx := t.Context()
	if owner, err := readOwner(ctx, kubeconfig); err != nil || owner != (capi.Owner{}) {
		t.Fatalf("before anybody wrote: %+v, %v", owner, err)
	}
	write := func(o capi.Owner) {
		t.Helper()
		if err := (claim{owner: o}).write(ctx, kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	second := capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}
	write(second)
	var taken *takenError
	early := claim{owner: capi.Owner{Fleet: "f", ManagementCluster: "first", UID: "u1", Epoch: 1}}
	if err := early.write(ctx, kubeconfig); !errors.As(err, &taken) || taken.says != "is managed by second" {
		t.Errorf("an earlier owner after a later one: %v", err)
	}
	if owner, err := readOwner(ctx, kubeconfig); err != nil || owner != second {
		t.Errorf("an earlier owner wrote over a later one: %+v, %v", owner, err)
	}

	object := func(text string) capi.Portable { return capi.Portable{Object: json.RawMessage(text)} }
	cluster := object(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"shop","name":"shop"}}`)
	silent := object(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"dark","name":"dark"}}`)
	secret := func(name string, content []byte) capi.Portable {
		return object(fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":%q,"name":%q},"data":{"value":%q}}`,
			name, name+"-kubeconfig", base64.StdEncoding.EncodeToString(content)))
	}
	dark := strings.ReplaceAll(string(kubeconfig), "https://127.0.0.1:", "https://127.0.0.1:1") // the port number is too large
	later := object(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"shop","name":"shop","annotations":{` +
		`"fleetctl.dev/owner":"{\"epoch\":2}"}}}`)
	for _, test := range []struct {
		cluster   capi.Portable
		fleet, of string
		want      map[string]string
	}{
		{cluster, "f", "first", map[string]string{"shop/shop": "is managed by second"}},
		{later, "f", "first", map[string]string{}},    // the epoch of this copy is later than the record
		{cluster, "f", "second", map[string]string{}}, // the record names the management cluster of the snapshot
		{cluster, "g", "first", map[string]string{"shop/shop": "is managed by second of another fleet (f)"}},
	} {
		snapshot := []capi.Portable{test.cluster, silent, secret("shop", kubeconfig), secret("dark", []byte(dark))}
		got := Elsewhere(ctx, snapshot, Party{Name: test.of}, test.fleet)
		if !maps.Equal(got.Others, test.want) || !slices.Equal(got.Silent, []string{"dark/dark"}) {
			t.Errorf("a snapshot of %s of fleet %s: %+v, want %v", test.of, test.fleet, got, test.want)
		}
	}
	write(capi.Owner{Fleet: "f", Epoch: 3})
	got := Elsewhere(ctx, []capi.Portable{later, secret("shop", kubeconfig)}, Party{Name: "second"}, "f")
	if got.Others["shop/shop"] != "was detached" {
		t.Errorf("after a detachment: %+v", got)
	}
	hostile := strings.Replace(string(kubeconfig), "users:",
		"users:\n- name: evil\n  user: {exec: {command: touch, args: [/tmp/owned], apiVersion: client.authentication.k8s.io/v1}}", 1)
	got = Elsewhere(ctx, []capi.Portable{cluster, secret("shop", []byte(hostile))}, Party{Name: "first"}, "f")
	if len(got.Others) > 0 || len(got.Seen) > 0 {
		t.Errorf("a kubeconfig that runs commands was used: %+v", got)
	}
}

// A cluster that another management cluster manages keeps its record: if a restore brings it back paused, and if that leftover copy is
// detached afterwards. Else the snapshots of its owner could not be restored.
func TestOwnerRecordOfAnothersCluster(t *testing.T) {
	client, kubeconfig := kubetest.Start(t)
	ctx := t.Context()
	kubetest.ClusterAPI(t, client, "clusters", "machines", "machinedeployments")
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "shop-kubeconfig"}
	if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	if err := client.Create(ctx, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": kubeconfig}}); err != nil {
		t.Fatal(err)
	}
	cluster := &unstructured.Unstructured{}
	if err := cluster.UnmarshalJSON([]byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"shop",` +
		`"name":"shop","annotations":{"fleetctl.dev/owner":"{\"epoch\":1}"}},` +
		`"spec":{"paused":true,"clusterNetwork":{"serviceDomain":"cluster.local"}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := client.Create(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	here, err := lookAtSide(ctx, Side{Name: "first", Client: client})
	if err != nil {
		t.Fatal(err)
	}
	theirs := capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}
	if err := (claim{owner: theirs}).write(ctx, kubeconfig); err != nil {
		t.Fatal(err)
	}
	is := func(story string, want capi.Owner) {
		t.Helper()
		if owner, err := readOwner(ctx, kubeconfig); err != nil || owner != want {
			t.Errorf("%s: the record is %+v, %v; want %+v", story, owner, err, want)
		}
	}
	r, key := newRun(Options{}), kube.Key{Namespace: "shop", Name: "shop"}
	r.target = here
	here.journal = &Journal{Fleet: "f", Clusters: []string{"shop/shop"}, Pause: []string{"shop/shop"}, Owner: here.party, Epoch: 2}
	r.recordOwners(ctx)
	is("restored paused", theirs)
	if err := r.unpauseCopies(ctx, []*unstructured.Unstructured{cluster}); err != nil {
		t.Fatal(err)
	}
	object, err := here.manager.ClusterObject(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if owner := capi.OwnerIn(object.GetAnnotations()); owner.Epoch != 1 || owner.ManagementCluster != "" {
		t.Errorf("the leftover copy says that it is managed here: %+v", owner)
	}
	refused := func(story, says string) {
		t.Helper()
		err := RefuseAnothers(ctx, here.Side, key, "")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: a transfer of it: %v, want %q", story, err, says)
		}
	}
	refused("another one's", "cluster shop/shop is managed by second, as its own record says: what first has is a leftover copy")
	r.source, r.target = here, &side{party: Party{Name: "third", UID: "u3"}}
	seen, others, err := r.askOwners(ctx, []string{"shop/shop"})
	if err != nil || !slices.Equal(others, []string{"shop/shop"}) || seen["shop/shop"] == "" {
		t.Errorf("a pivot of the paused copy: %v, %v, %v; want it to leave the record of its owner", seen, others, err)
	}
	pause := func(paused bool) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
		if err := client.WithWatch.Patch(ctx, object, runtimeclient.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	pause(false)
	if _, _, err = r.askOwners(ctx, []string{"shop/shop"}); err == nil || !strings.Contains(err.Error(), "shop/shop is managed by second") {
		t.Errorf("a pivot of a copy that its controllers act on: %v", err)
	}
	pause(true)
	r.target = nil
	r.recordDetached(ctx)
	is("the copy is detached", theirs)

	restored := func(owner capi.Owner) { // this one was restored from a snapshot, too: it counts as many hand-overs
		t.Helper()
		mark, err := json.Marshal(owner.String())
		if err != nil {
			t.Fatal(err)
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, capi.OwnerMark, mark)
		if err := client.WithWatch.Patch(ctx, object, runtimeclient.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	restored(capi.Owner{Fleet: "f", ManagementCluster: "first", UID: here.party.UID, Epoch: theirs.Epoch})
	r.recordDetached(ctx)
	is("one of two restores is detached", theirs)
	refused("one of two restores", "cluster shop/shop is managed by second")
	r.target = &side{party: Party{Name: "third", UID: "u3"}}
	pause(false)
	if _, _, err = r.askOwners(ctx, []string{"shop/shop"}); err == nil || !strings.Contains(err.Error(), "shop/shop is managed by second") {
		t.Errorf("a pivot of one of two restores: %v", err)
	}
	pause(true)
	r.target = nil
	restored(capi.Owner{Epoch: 1})

	own := capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 1} // of before the copy's last hand-over
	there := &corev1.ConfigMap{}
	if err := client.Get(ctx, OwnerKey, there); err != nil {
		t.Fatal(err)
	}
	for story, record := range map[string]string{"an older record": own.String(), "a damaged record": "{"} {
		there.Data["owner"] = record
		if err := client.Update(ctx, there); err != nil {
			t.Fatal(err)
		}
		if record == "{" {
			refused(story, "its record of its owner is damaged")
		} else {
			refused(story, "")
		}
		r.recordDetached(ctx)
		is(story, capi.Owner{Fleet: "f", Epoch: 3})
		refused(story+", then detached", "cluster shop/shop was detached, as its own record says")
		if err := client.Get(ctx, OwnerKey, there); err != nil {
			t.Fatal(err)
		}
	}
}
