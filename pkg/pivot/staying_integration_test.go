//go:build integration

package pivot

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The end of a pivot has one line for each provider whose credentials stay on the target. It is silent about variables that are no
// secrets, about a credential that it takes off, and if the user wants all to stay.
func TestTellsWhichCredentialsStay(t *testing.T) {
	ctx := t.Context()
	client, _ := kubetest.Start(t)
	if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: credentials.Key.Namespace}}); err != nil {
		t.Fatal(err)
	}
	given := map[string]map[string]string{
		"docker":    nil,
		"gcp":       {"GCP_B64ENCODED_CREDENTIALS": "eyJ0b3BzZWNyZXQiOiJ5In0="},
		"vsphere":   {"VSPHERE_PASSWORD": "topsecret", "VSPHERE_USERNAME": "somebody", "FEATURE": "true"},
		"aws":       {"AWS_B64ENCODED_CREDENTIALS": "Cg==", "AWS_MORE": "topsecret"}, // an earlier run took the first off
		"openstack": {"CLOUD_TOKEN": "topsecret"},
	}
	v := &resolve.Versions{Variables: map[string]string{"AWS_B64ENCODED_CREDENTIALS": "Cg=="}}
	err := credentials.Change(ctx, client, func(record *credentials.Record) {
		for name, values := range given {
			provider := releases.Provider{Name: name, Type: releases.Infrastructure, Version: "v1.0.0"}
			v.Providers = append(v.Providers, provider)
			record.Give(provider.Label(), values, func(name string) bool { return name != "FEATURE" }, nil, time.Now())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	heard := &spoken{Reporter: progress.Discard}
	p := &Move{session: &session.Session{Deps: management.Deps{Report: heard}}}
	target := &Target{handedTarget: &handedTarget{Name: "platform"}, client: client}
	end := func() string {
		heard.warnings = ""
		err := p.withdraw(ctx, target, &resolve.Manifests{Versions: v}, nil, nil, func(string) {})
		if nothing := steps.NothingToDo(""); err == nil || !errors.As(err, &nothing) {
			t.Fatalf("got %v", err)
		}
		return heard.warnings
	}
	said := end()
	for _, line := range []string{
		"the credentials of the provider gcp stay on platform (GCP_B64ENCODED_CREDENTIALS): it does not start without the file of a key. ",
		"the credentials of the provider vsphere stay on platform (VSPHERE_PASSWORD, VSPHERE_USERNAME): machines of vSphere have no identity ",
		"the credentials of the provider aws stay on platform (AWS_MORE): nothing is known here that could replace them. ",
		"the credentials of the provider openstack stay on platform (CLOUD_TOKEN): nothing is known here that could replace them. ",
	} {
		if !strings.Contains(said, line) {
			t.Errorf("it does not say %q", line)
		}
	}
	if strings.Count(said, "\n") != 4 || strings.Count(said, "`fleetctl init`") != 4 || strings.Contains(said, "topsecret") {
		t.Errorf("it says\n%s", said)
	}
	p.KeepCredentials = true
	if said := end(); said != "" {
		t.Errorf("if all are to stay, it says\n%s", said)
	}
}
