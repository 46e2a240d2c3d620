package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
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
	sources := &Sources{Dir: "/masters", Declared: &above}
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
		"the age keys of the parent": {
			add(v1alpha1.Variable{Name: "X", Env: "SOPS_AGE_KEY"}),
			"variable X of provider aws comes from environment variable SOPS_AGE_KEY",
		},
		"a variable of that name":      {add(v1alpha1.Variable{Name: "ROOT_TOKEN"}), "environment variable ROOT_TOKEN"},
		"one that is a value there":    {add(v1alpha1.Variable{Name: "REGION"}), "environment variable REGION"},
		"a file":                       {add(v1alpha1.Variable{Name: "X", File: "/home/ci/.ssh/id_ed25519"}), "file /home/ci/.ssh/id_ed25519"},
		"standard input":               {add(v1alpha1.Variable{Name: "X", Stdin: true}), "standard input"},
		"a command":                    {add(v1alpha1.Variable{Name: "X", Command: []string{"sh", "-c", "env"}}), "command sh"},
		"a command with other options": {add(v1alpha1.Variable{Name: "X", Command: []string{"eu-token", "--of=root"}}), "command eu-token"},
		"a secret of Vault": {
			add(v1alpha1.Variable{Name: "X", Vault: &v1alpha1.VaultSecret{Path: "aws/creds/root", Field: "key"}}),
			"Vault aws/creds/root",
		},
		"a way into Vault": {func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) { m.Vault.Role = "root" }, "vault, which says"},
		"another token for Vault": {
			func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) { m.Vault.JWTEnv = "SOPS_AGE_KEY" },
			"vault, which says",
		},
		"another parent": {func(_ *v1alpha1.Fleet, m *v1alpha1.ManagementCluster) { m.Parent = "other" }, `parent is "other"`},
		"another server": {func(f *v1alpha1.Fleet, _ *v1alpha1.ManagementCluster) {
			f.Spec.Git.URL = "https://elsewhere.example.com/eu.git"
		}, "https://elsewhere.example.com"},
	} {
		fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{
			Git:                v1alpha1.Git{URL: url},
			ManagementClusters: []v1alpha1.ManagementCluster{declared()},
		}}
		tc.set(fleet, &fleet.Spec.ManagementClusters[0])
		err := sources.Check(fleet)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || diag.Hint(err) == "") {
			t.Errorf("%s: %v (%s)", name, err, diag.Hint(err))
		}
	}
}

// A run for a management cluster with a repository of its own sees what its fleet.yaml names of the environment, and nothing of its
// parent's.
func TestNarrowed(t *testing.T) {
	environment := map[string]string{
		"SOPS_AGE_KEY_FILE": "/root/masters.agekey", "A_TOKEN": "the root's", "EU_TOKEN": "eu's", "VAULT_TOKEN": "vault's", "HOME": "/root",
	}
	deps := management.Deps{LookupEnv: func(name string) (string, bool) { value, ok := environment[name]; return value, ok }}
	value := "in clear"
	m := &v1alpha1.ManagementCluster{Providers: []v1alpha1.Provider{{
		Name:      "docker",
		Variables: []v1alpha1.Variable{{Name: "A_REGION", Value: &value}, {Name: "SOME_TOKEN", Env: "EU_TOKEN"}},
	}}}
	narrow := Narrowed(deps, m)
	for name, want := range map[string]string{
		"EU_TOKEN": "eu's", "A_TOKEN": "", "SOPS_AGE_KEY_FILE": "", "VAULT_TOKEN": "", "A_REGION": "", "HOME": "",
	} {
		if got, ok := narrow.LookupEnv(name); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %t", name, got, ok)
		}
	}
	m.Providers[0].Variables = append(m.Providers[0].Variables,
		v1alpha1.Variable{Name: "A_SECRET", Vault: &v1alpha1.VaultSecret{Path: "aws/creds/eu", Field: "key"}})
	for name, want := range map[string]string{"VAULT_TOKEN": "vault's", "HOME": "/root"} { // the token may be in a file at home
		if got, _ := Narrowed(deps, m).LookupEnv(name); got != want {
			t.Errorf("Vault is reached with %s %q", name, got)
		}
	}
	if got, _ := deps.LookupEnv("A_TOKEN"); got != "the root's" {
		t.Errorf("the root has %q", got)
	}
}
