package lifecycle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Who may push to the repository of its own does not choose what a run with its parent's credentials reads, runs, or asks of Vault.
func TestSources(t *testing.T) {
	value := "in clear"
	declared := func() v1alpha1.ManagementCluster {
		return v1alpha1.ManagementCluster{
			Name: "eu", Parent: "root", Vault: v1alpha1.Vault{Method: v1alpha1.VaultJWT, Role: "eu", JWTEnv: "EU_JWT"},
			Providers: []v1alpha1.Provider{{Name: "aws", Variables: []v1alpha1.Variable{
				{Name: "A_TOKEN", Env: "EU_TOKEN"},
				{Name: "B_TOKEN"},
				{Name: "C_TOKEN", File: "/home/ci/eu"},
				{Name: "D_TOKEN", Command: []string{"eu-token", "--once"}},
				{Name: "E_TOKEN", Vault: &v1alpha1.VaultSecret{Path: "aws/creds/eu", Field: "key"}},
				{Name: "REGION", Value: &value},
			}}},
		}
	}
	const url = "https://git.example.com/eu.git"
	above := declared()
	above.Repository = &v1alpha1.Repository{Git: v1alpha1.Git{URL: url}}
	sources := &session.Sources{Dir: "/masters", Declared: &above}
	another := "another"
	add := func(v v1alpha1.Variable) func(*v1alpha1.Fleet, *v1alpha1.ManagementCluster) {
		return func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) {
			m.Providers[0].Variables = append(slices.Clone(m.Providers[0].Variables), v)
		}
	}
	for name, tc := range map[string]struct {
		set  func(*v1alpha1.Fleet, *v1alpha1.ManagementCluster)
		want string
	}{
		"what is declared":         {func(*v1alpha1.Fleet, *v1alpha1.ManagementCluster) {}, ""},
		"another value in clear":   {add(v1alpha1.Variable{Name: "REGION", Value: &another}), ""},
		"another name of a source": {add(v1alpha1.Variable{Name: "F_TOKEN", Env: "EU_TOKEN"}), ""},
		"no variables":             {func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) { m.Providers = nil }, ""},
		"the age keys of the parent": {add(v1alpha1.Variable{Name: "X", Env: "SOPS_AGE_KEY"}),
			"variable X of provider aws comes from environment variable SOPS_AGE_KEY"},
		"a variable of that name":      {add(v1alpha1.Variable{Name: "ROOT_TOKEN"}), "environment variable ROOT_TOKEN"},
		"one that is a value there":    {add(v1alpha1.Variable{Name: "REGION"}), "environment variable REGION"},
		"a file":                       {add(v1alpha1.Variable{Name: "X", File: "/home/ci/.ssh/id_ed25519"}), "file /home/ci/.ssh/id_ed25519"},
		"standard input":               {add(v1alpha1.Variable{Name: "X", Stdin: true}), "standard input"},
		"a command":                    {add(v1alpha1.Variable{Name: "X", Command: []string{"sh", "-c", "env"}}), "command sh"},
		"a command with other options": {add(v1alpha1.Variable{Name: "X", Command: []string{"eu-token", "--of=root"}}), "command eu-token"},
		"a secret of Vault": {add(v1alpha1.Variable{Name: "X", Vault: &v1alpha1.VaultSecret{Path: "aws/creds/root", Field: "key"}}),
			"Vault aws/creds/root"},
		"a way into Vault": {func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) { m.Vault.Role = "root" }, "vault, which says"},
		"another token for Vault": {func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) { m.Vault.JWTEnv = "SOPS_AGE_KEY" },
			"vault, which says"},
		"another parent": {func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) { m.Parent = "other" }, `parent is "other"`},
		"another server": {func(f *v1alpha1.Fleet, _ *v1alpha1.ManagementCluster) {
			f.Spec.Git.URL = "https://elsewhere.example.com/eu.git"
		}, "https://elsewhere.example.com"},
	} {
		fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{Git: v1alpha1.Git{URL: url},
			ManagementClusters: []v1alpha1.ManagementCluster{declared()}}}
		tc.set(fleet, &fleet.Spec.ManagementClusters[0])
		err := sources.Check(fleet)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || diag.Hint(err) == "") {
			t.Errorf("%s: %v (%s)", name, err, diag.Hint(err))
		}
	}
}

// Init looks itself: what it reads may have been pushed a moment ago.
func TestInitTakesOnlyDeclaredSources(t *testing.T) {
	server, dir, deps, _ := ownRepoOf(t)
	own, err := OpenOwnRepo(t.Context(), deps, OwnRepoOptions{Dir: dir, Cluster: "eu", Git: change.Credentials{Token: server.Token}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(own.Dir, v1alpha1.FileName)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(t.TempDir(), "canary")
	changed := strings.Replace(string(content), "name: docker\n",
		"name: docker\n          variables: [{name: X, command: [touch, "+canary+"]}]\n", 1)
	if changed == string(content) {
		t.Fatalf("no provider in\n%s", content)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	declared := &v1alpha1.ManagementCluster{Name: "eu", Parent: "root", Providers: []v1alpha1.Provider{{Name: "docker"}}}
	_, err = Init(t.Context(), session.Narrowed(deps, declared),
		session.Options{Dir: own.Dir, Cluster: "eu", Sources: &session.Sources{Dir: dir, Declared: declared}})
	if err == nil || !strings.Contains(err.Error(), "variable X of provider docker comes from command touch") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("the command was run")
	}
}

// A command sees what its run may see of the environment, and runs in the fleet repo that declares it.
func TestNarrowedCommand(t *testing.T) {
	_, dir, deps, _ := ownRepoOf(t)
	t.Setenv("SOPS_AGE_KEY", "the key of the parent")
	look := v1alpha1.Variable{Name: "D_TOKEN", Command: []string{"/bin/sh", "-c", "echo $" + "SOPS_AGE_KEY" + "$EU_TOKEN; pwd"}}
	declared := &v1alpha1.ManagementCluster{Name: "eu",
		Providers: []v1alpha1.Provider{{Name: "docker", Variables: []v1alpha1.Variable{look, {Name: "EU_TOKEN"}}}}}
	s := &session.Session{Deps: session.Narrowed(deps, declared),
		Opts: session.Options{Dir: t.TempDir(), Sources: &session.Sources{Dir: dir, Declared: declared}}, Mgmt: declared}
	resolved, err := s.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := resolved.Values["D_TOKEN"]; got != "eu's\n"+dir {
		t.Errorf("it saw %q", got)
	}
}
