//go:build integration

package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A pipeline learns from the exit code that a credential ends soon, or has ended.
func TestCredentialsExitCode(t *testing.T) {
	isolate(t)
	client, kubeconfig := kubetest.Start(t)
	file := filepath.Join(t.TempDir(), "admin")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // no fleet repo
	if err := client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: credentials.Key.Namespace}}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentials.Key.Namespace, Name: credentials.Key.Name}}
	if err := client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (code int, out string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		all := append([]string{"credentials", "--kubeconfig", file, "--state-dir", t.TempDir(), "--cache-dir", t.TempDir()}, args...)
		code = Main(t.Context(), ui.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}, all)
		return code, stdout.String() + stderr.String()
	}
	now := time.Now().UTC()
	at := func(d time.Duration) *time.Time { end := now.Add(d); return &end }
	for name, test := range map[string]struct {
		until *time.Time
		args  []string
		want  int
	}{
		"no end is known":       {nil, nil, 0},
		"it ends in two days":   {at(48 * time.Hour), nil, 0},
		"within is longer":      {at(48 * time.Hour), []string{"--within", "72h"}, 3},
		"it ends in an hour":    {at(time.Hour), nil, 3},
		"within is shorter":     {at(time.Hour), []string{"--within", "1m"}, 0},
		"it has ended":          {at(-time.Minute), []string{"--within", "0s"}, 3},
		"programs learn it too": {at(time.Hour), []string{"-o", "json"}, 3},
	} {
		record, err := json.Marshal(credentials.Record{FormatVersion: "1", Providers: map[string]*credentials.Provider{
			"infrastructure-aws": {Variables: map[string]credentials.Value{
				"KEY": {Since: now, Secret: true, Origin: credentials.Origin{Source: "file key", Until: test.until}},
			}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		secret.Data = map[string][]byte{"record": record}
		if err := client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if code, out := run(test.args...); code != test.want || !strings.Contains(out, "KEY") {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, test.want, out)
		}
	}
}
