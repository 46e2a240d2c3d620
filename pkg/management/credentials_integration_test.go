//go:build integration

package management_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// What a management cluster keeps of its providers' variables is what `fleetctl credentials` lists: what is secret, or ends.
func TestCredentialsOfACluster(t *testing.T) {
	client, _ := kubetest.Start(t)
	manager, err := capi.New(client)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	soon, late, past := now.Add(time.Hour), now.Add(48*time.Hour), now.Add(-time.Minute)
	record, err := json.Marshal(credentials.Record{
		FormatVersion: "1",
		Providers: map[string]*credentials.Provider{"infrastructure-aws": {Variables: map[string]credentials.Value{
			"KEY": {Since: now, Secret: true, Origin: credentials.Origin{Source: "file key"}}, "FEATURE": {Since: now},
			"SOON": {Since: now, Origin: credentials.Origin{Until: &soon, Lease: "aws/creds/x/canary", Renewable: true}},
			"LENT": {Since: now, Origin: credentials.Origin{Until: &past, Lease: "aws/creds/x/canary"}}, // of a token that ends
			"LATE": {Since: now, Origin: credentials.Origin{Until: &late}},
			"PAST": {Since: now, Secret: true, Origin: credentials.Origin{Until: &past}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := management.HeldBy(t.Context(), manager, time.Hour, now); err != nil || len(all) != 0 {
		t.Fatalf("a cluster that was given nothing has %v, %v", all, err)
	}
	if err := client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: credentials.Key.Namespace}}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: credentials.Key.Namespace, Name: credentials.Key.Name},
		Data:       map[string][]byte{"record": record, "key": []byte("canary")},
	}
	if err := client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	all, err := management.HeldBy(t.Context(), manager, 24*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, fmt.Sprintf("%s %s %s %v", c.Provider, c.Name, c.Ends, c.Renewable))
	}
	want := []string{"aws KEY  false", "aws LATE  false", "aws LENT ended true", "aws PAST ended false", "aws SOON soon true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if raw, _ := json.Marshal(all); strings.Contains(string(raw), "canary") {
		t.Errorf("it shows more than it should: %s", raw)
	}
	secret.Data["record"] = []byte("no record")
	if err := client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if all, err := management.HeldBy(t.Context(), manager, time.Hour, now); err == nil {
		t.Errorf("a broken record is taken for %v", all)
	}
}
