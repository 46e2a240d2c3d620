//go:build integration

package capi

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// testReaders are a manager that mounts objects with variables, a manager that reads none, and a service account with a role.
const testReaders = `---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: infrastructureaws-system}
stringData:
  login: |
    user = me
    password = ${TEST_PASSWORD}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: reader
  namespace: infrastructureaws-system
  annotations: {example.com/role: "${TEST_ROLE:=none}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: reader, namespace: infrastructureaws-system}
spec:
  selector: {matchLabels: {app: reader}}
  template:
    metadata: {labels: {app: reader}}
    spec:
      serviceAccountName: reader
      containers:
      - name: manager
        image: example.com/reader:v1
        args: ["--feature=${TEST_FEATURE:=false}"]
        volumeMounts: [{name: login, mountPath: /login}]
      volumes: [{name: login, secret: {secretName: login}}]
`

var reader, other = kube.Key{Namespace: "infrastructureaws-system", Name: "reader"},
	kube.Key{Namespace: "infrastructureaws-system", Name: "infrastructureaws-manager"}

// valuesBed is a management cluster with a provider whose variables change.
type valuesBed struct {
	*testing.T
	manage    *Manager
	client    *kube.Client
	root      string
	providers []releases.Provider
	origins   map[string]credentials.Origin
}

func newValuesBed(t *testing.T) *valuesBed {
	root := newRepository(t)
	m, c, source := newManagementFrom(t, root)
	b := &valuesBed{T: t, manage: m, client: c, root: root}
	releasestest.WriteFile(t, filepath.Join(b.root, "infrastructure-aws", "v1.14.2", "infrastructure-components.yaml"),
		strings.ReplaceAll(releasestest.Components, "NAME", "infrastructureaws")+releasestest.Secret+testReaders)
	b.providers = resolve(t, source, []releases.Provider{{Name: "aws"}})
	return b
}

func (b *valuesBed) variables(more ...string) map[string]string {
	values := map[string]string{"AWS_B64ENCODED_CREDENTIALS": "c2VjcmV0", "TEST_PASSWORD": "correct-horse"}
	for i := 0; i < len(more); i += 2 {
		values[more[i]] = more[i+1]
	}
	return values
}

func (b *valuesBed) install(variables map[string]string) (*InstallResult, error) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	source := newSource(b.T, releases.SourceOptions{Repository: b.root, Variables: variables})
	return b.manage.Install(ctx, source, InstallOptions{Providers: b.providers, Origins: b.origins})
}

// renewed installs, and expects that exactly these variables changed and exactly these Deployments were restarted.
func (b *valuesBed) renewed(variables map[string]string, names, restarted []string) {
	b.Helper()
	before := b.generations()
	result, err := b.install(variables)
	if err != nil {
		b.Fatal(err)
	}
	var got Renewed
	if len(result.Renewed) > 0 {
		got = result.Renewed[0]
	}
	if len(result.Renewed) > 1 || !slices.Equal(got.Variables, names) || !slices.Equal(got.Restarted, restarted) {
		b.Fatalf("renewed %+v, want %v and %v", result.Renewed, names, restarted)
	}
	for key, generation := range b.generations() {
		if want := slices.Contains(restarted, key.String()); (generation != before[key]) != want {
			b.Errorf("Deployment %s went from generation %d to %d, want a restart: %v", key, before[key], generation, want)
		}
	}
}

func (b *valuesBed) generations() map[kube.Key]int64 {
	b.Helper()
	all := map[kube.Key]int64{}
	list := &appsv1.DeploymentList{}
	if err := b.client.List(b.Context(), list); err != nil {
		b.Fatal(err)
	}
	for i := range list.Items {
		all[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].Generation
	}
	return all
}

func (b *valuesBed) secret(key kube.Key) *corev1.Secret {
	b.Helper()
	secret := &corev1.Secret{}
	if err := b.client.Get(b.Context(), key, secret); err != nil {
		b.Fatal(err)
	}
	return secret
}

func (b *valuesBed) held() *credentials.Provider {
	b.Helper()
	held, err := b.manage.Held(b.Context())
	if err != nil || held.Providers["infrastructure-aws"] == nil {
		b.Fatalf("held %+v, %v", held, err)
	}
	return held.Providers["infrastructure-aws"]
}

// Changed values reach the provider's objects, and the Deployments that read them only at their start are restarted. No other Deployment
// is. Without a change, nothing is written.
func TestChangedVariables(t *testing.T) {
	b := newValuesBed(t)
	if _, err := b.install(b.variables()); err != nil {
		t.Fatal(err)
	}
	before, record := versions(t, b.client), b.secret(credentials.Key).ResourceVersion
	b.renewed(b.variables(), nil, nil)
	if after := versions(t, b.client); !slices.Equal(before, after) || b.secret(credentials.Key).ResourceVersion != record {
		t.Errorf("nothing changed, but:\n%v\n%v", before, after)
	}

	b.renewed(b.variables("TEST_PASSWORD", "battery-staple"), []string{"TEST_PASSWORD"}, []string{reader.String()})
	if got := string(b.secret(kube.Key{Namespace: reader.Namespace, Name: "login"}).Data["login"]); !strings.Contains(got, "battery-staple") {
		t.Errorf("the Secret has %s", got)
	}
	held := b.held()
	if v := held.Variables["TEST_PASSWORD"]; !v.Secret || v.Since.IsZero() || len(held.Restart) != 0 {
		t.Errorf("kept %+v", held)
	}
	for field, content := range b.secret(credentials.Key).Data {
		if strings.Contains(string(content), "staple") {
			t.Errorf("the value is kept in %s: %s", field, content)
		}
	}

	password := []string{"TEST_PASSWORD", "battery-staple"}
	// an object that no pod mounts is written, and no Deployment is restarted
	b.renewed(b.variables(append(password, "AWS_B64ENCODED_CREDENTIALS", "b3RoZXI=")...), []string{"AWS_B64ENCODED_CREDENTIALS"}, nil)
	password = append(password, "AWS_B64ENCODED_CREDENTIALS", "b3RoZXI=")
	// the value for a provider without this credential is no secret, and so it is no credential of the cluster
	if v := b.held().Variables["AWS_B64ENCODED_CREDENTIALS"]; !v.Secret {
		t.Errorf("kept %+v", v)
	}
	b.renewed(b.variables(append(password, "AWS_B64ENCODED_CREDENTIALS", "Cg==")...), []string{"AWS_B64ENCODED_CREDENTIALS"}, nil)
	if v := b.held().Variables["AWS_B64ENCODED_CREDENTIALS"]; v.Secret {
		t.Errorf("kept %+v", v)
	}
	b.renewed(b.variables(password...), []string{"AWS_B64ENCODED_CREDENTIALS"}, nil)
	// a variable in a Deployment itself
	b.renewed(b.variables(append(password, "TEST_FEATURE", "true")...), []string{"TEST_FEATURE"}, []string{reader.String()})
	// a variable in its service account
	b.renewed(b.variables(append(password, "TEST_FEATURE", "true", "TEST_ROLE", "arn:1")...), []string{"TEST_ROLE"}, []string{reader.String()})

	t.Run("a variable that this run has not", func(t *testing.T) {
		b.T = t
		b.renewed(b.variables(password...), nil, nil) // there is nothing else to do, so the value stays
		_, err := b.install(b.variables("TEST_PASSWORD", "third-time"))
		if err == nil || !strings.Contains(err.Error(), "TEST_FEATURE, TEST_ROLE") || !strings.Contains(diag.Hint(err), "variables:") {
			t.Errorf("got %v", err)
		}
		b.renewed(b.variables(append(password, "TEST_FEATURE", "false", "TEST_ROLE", "")...), []string{"TEST_FEATURE", "TEST_ROLE"},
			[]string{reader.String()})
	})
}

// A cluster without a record, made by an older fleetctl, gets changed values too. So does a cluster whose Secret was changed or deleted.
func TestChangedVariablesWithoutRecord(t *testing.T) {
	b := newValuesBed(t)
	if _, err := b.install(b.variables()); err != nil {
		t.Fatal(err)
	}
	forget := func() {
		if err := b.client.WithWatch.Delete(t.Context(), b.secret(credentials.Key)); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	b.renewed(b.variables(), nil, nil)
	forget()
	b.renewed(b.variables("TEST_PASSWORD", "battery-staple"), []string{"TEST_PASSWORD"}, []string{reader.String()})
	if err := b.client.WithWatch.Delete(t.Context(), b.secret(kube.Key{Namespace: reader.Namespace, Name: "login"})); err != nil {
		t.Fatal(err)
	}
	b.renewed(b.variables("TEST_PASSWORD", "battery-staple"), []string{"TEST_PASSWORD"}, []string{reader.String()})
	forget()
	b.renewed(b.variables("TEST_PASSWORD", "battery-staple", "TEST_FEATURE", "true"), []string{"TEST_FEATURE"}, []string{reader.String()})
}

// The same value from another source is recorded with its source and its end, and restarts nothing.
func TestSameValueFromAnotherSource(t *testing.T) {
	b := newValuesBed(t)
	if _, err := b.install(b.variables()); err != nil {
		t.Fatal(err)
	}
	since, end := b.held().Variables["TEST_PASSWORD"].Since, time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, origin := range []credentials.Origin{
		{Source: "environment variable TEST_PASSWORD"},
		{Source: "file password"},
		{Source: "standard input"},
		{Source: "command pass", Until: &end},
		{Source: "Vault secret/aws", Until: &end, Lease: "secret/aws/1", Renewable: true, Duration: time.Hour},
		{Source: "fleet.yaml"},
	} {
		b.origins = map[string]credentials.Origin{"TEST_PASSWORD": origin}
		b.renewed(b.variables(), nil, nil)
		if v := b.held().Variables["TEST_PASSWORD"]; !reflect.DeepEqual(v.Origin, origin) || !v.Since.Equal(since) {
			t.Errorf("from %s: kept %+v, want since %s", origin.Source, v, since)
		}
	}
}

// If a run is killed after it has written the Secret, and the next run has the former value again, the Secret gets it back, and the reader,
// which may have started meanwhile, is restarted. If it is killed between two restarts, the next run makes both.
func TestValueGoesBackAfterKill(t *testing.T) {
	b := newValuesBed(t)
	if _, err := b.install(b.variables()); err != nil {
		t.Fatal(err)
	}
	kill := func(restart ...kube.Key) {
		source := newSource(t, releases.SourceOptions{Repository: b.root, Variables: b.variables("TEST_PASSWORD", "battery-staple")})
		todo, err := b.manage.plan(t.Context(), source, b.providers)
		if err != nil || len(todo.renewals) != 1 {
			t.Fatalf("%+v, %v", todo, err)
		}
		todo.renewals[0].restart = append(todo.renewals[0].restart, restart...)
		if err := b.manage.announce(t.Context(), todo.renewals); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.Apply(t.Context(), todo.renewals[0].objects, kube.ApplyOptions{ForceConflicts: true}); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	b.renewed(b.variables(), []string{"TEST_PASSWORD"}, []string{reader.String()})
	if got := string(b.secret(kube.Key{Namespace: reader.Namespace, Name: "login"}).Data["login"]); strings.Contains(got, "battery-staple") {
		t.Errorf("the Secret has %s", got)
	}
	b.renewed(b.variables(), nil, nil)
	kill(other)
	both := []string{other.String(), reader.String()}
	b.renewed(b.variables("TEST_PASSWORD", "battery-staple"), []string{"TEST_PASSWORD"}, both)
	b.renewed(b.variables("TEST_PASSWORD", "battery-staple"), nil, nil)
}

// If a run is killed after it has written the Secret and before it has restarted the reader, the next run restarts the reader.
func TestChangedVariablesAfterKill(t *testing.T) {
	b := newValuesBed(t)
	if _, err := b.install(b.variables()); err != nil {
		t.Fatal(err)
	}
	changed := b.variables("TEST_PASSWORD", "battery-staple")
	source := newSource(t, releases.SourceOptions{Repository: b.root, Variables: changed})
	todo, err := b.manage.plan(t.Context(), source, b.providers)
	if err != nil || len(todo.renewals) != 1 {
		t.Fatalf("%+v, %v", todo, err)
	}
	if err := b.manage.announce(t.Context(), todo.renewals); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.Apply(t.Context(), todo.renewals[0].objects, kube.ApplyOptions{ForceConflicts: true}); err != nil {
		t.Fatal(err)
	}
	b.renewed(changed, []string{"TEST_PASSWORD"}, []string{reader.String()})
	b.renewed(changed, nil, nil)
}

// If other parts of a provider must be applied too, changed values still reach the Deployments that are otherwise in the wanted state.
func TestChangedVariablesOfHalfAProvider(t *testing.T) {
	b := newValuesBed(t)
	if _, err := b.install(b.variables()); err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = other.Namespace, other.Name
	if err := b.client.WithWatch.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	before := b.generations()[reader]
	result, err := b.install(b.variables("TEST_PASSWORD", "battery-staple"))
	if err != nil || len(result.Installed) != 1 || len(result.Renewed) != 1 ||
		!reflect.DeepEqual(result.Renewed[0].Restarted, []string{reader.String()}) {
		t.Fatalf("%+v, %v", result, err)
	}
	if after := b.generations()[reader]; after == before {
		t.Error("the reader was not started again")
	}
}

// An API server quotes the values that it refuses. The error must not show them.
func TestErrorsHideValues(t *testing.T) {
	b := newValuesBed(t)
	file := filepath.Join(b.root, "infrastructure-aws", "v1.14.2", "infrastructure-components.yaml")
	releasestest.WriteFile(t, file, strings.ReplaceAll(releasestest.Components, "NAME", "infrastructureaws")+`---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: infrastructureaws-system}
stringData: {password: ${TEST_PASSWORD}}
`)
	_, err := b.install(map[string]string{"TEST_PASSWORD": "31415926"})
	if err == nil || strings.Contains(err.Error(), "31415926") || !strings.Contains(err.Error(), "[value of TEST_PASSWORD]") {
		t.Errorf("got %v", err)
	}
}

// Unknown values stay as they are in the cluster, unless they are needed. Then Install returns an error and has changed nothing.
func TestKeptValues(t *testing.T) {
	b := newValuesBed(t)
	if _, err := b.install(b.variables()); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	install := func(variables map[string]string) (*InstallResult, error) {
		source, err := newSource(t, releases.SourceOptions{Repository: b.root}).WithVariables(variables, "TEST_PASSWORD")
		if err != nil {
			t.Fatal(err)
		}
		return b.manage.Install(t.Context(), source, InstallOptions{
			Providers: b.providers,
			Origins:   map[string]credentials.Origin{"TEST_PASSWORD": {Lease: "l", Until: &end}},
		})
	}
	unknown := b.variables("TEST_PASSWORD", "stands-in")
	if result, err := install(unknown); err != nil || len(result.Renewed) != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	login := kube.Key{Namespace: reader.Namespace, Name: "login"}
	if got := string(b.secret(login).Data["login"]); !strings.Contains(got, "correct-horse") {
		t.Errorf("the Secret has %s", got)
	}
	if v := b.held().Variables["TEST_PASSWORD"]; v.Lease != "l" || v.Until == nil || !v.Until.Equal(end) || !v.Secret {
		t.Errorf("kept %+v", v)
	}
	b.renewed(b.variables(), nil, nil) // the fingerprint stays too

	var needs *NeedsValuesError
	if err := b.client.WithWatch.Delete(t.Context(), b.secret(login)); err != nil {
		t.Fatal(err)
	}
	if _, err := install(unknown); !errors.As(err, &needs) || !slices.Equal(needs.Names, []string{"TEST_PASSWORD"}) {
		t.Errorf("got %v", err)
	}
	b.renewed(b.variables(), []string{"TEST_PASSWORD"}, []string{reader.String()})
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = other.Namespace, other.Name
	if err := b.client.WithWatch.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := install(unknown); !errors.As(err, &needs) {
		t.Errorf("got %v", err)
	}
}
