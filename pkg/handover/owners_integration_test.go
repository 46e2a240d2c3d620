//go:build integration

package handover

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
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
		if err := writeOwner(ctx, kubeconfig, o); err != nil {
			t.Fatal(err)
		}
	}
	second := capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}
	write(second)
	write(capi.Owner{Fleet: "f", ManagementCluster: "first", UID: "u1", Epoch: 1})
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
		{cluster, "g", "first", map[string]string{}},  // the record is not of this fleet
	} {
		snapshot := []capi.Portable{test.cluster, silent, secret("shop", kubeconfig), secret("dark", []byte(dark))}
		if got := Elsewhere(ctx, snapshot, test.fleet, test.of); !maps.Equal(got, test.want) {
			t.Errorf("a snapshot of %s of fleet %s: %v, want %v", test.of, test.fleet, got, test.want)
		}
	}
	write(capi.Owner{Fleet: "f", Epoch: 3})
	if got := Elsewhere(ctx, []capi.Portable{later, secret("shop", kubeconfig)}, "f", "second"); got["shop/shop"] != "was detached" {
		t.Errorf("after a detachment: %v", got)
	}
	hostile := strings.Replace(string(kubeconfig), "users:",
		"users:\n- name: evil\n  user: {exec: {command: touch, args: [/tmp/owned], apiVersion: client.authentication.k8s.io/v1}}", 1)
	if got := Elsewhere(ctx, []capi.Portable{cluster, secret("shop", []byte(hostile))}, "f", "first"); len(got) > 0 {
		t.Errorf("a kubeconfig that runs commands was used: %v", got)
	}
}
