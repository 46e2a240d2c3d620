package hosts

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/state"
)

func TestDeclare(t *testing.T) {
	fallback := func() v1alpha1.HostType { return v1alpha1.HostEmbedded }
	for name, test := range map[string]struct {
		wishes Wishes
		want   v1alpha1.Host
	}{
		"nothing":    {Wishes{}, v1alpha1.Host{Type: v1alpha1.HostEmbedded}},
		"a type":     {Wishes{Type: v1alpha1.HostKind}, v1alpha1.Host{Type: v1alpha1.HostKind}},
		"node image": {Wishes{NodeImage: "node:v1"}, v1alpha1.Host{Kind: &v1alpha1.KindHost{Image: "node:v1"}}},
		"a context": {
			Wishes{Type: v1alpha1.HostExisting, Context: "prod", Kubeconfig: "kc"},
			v1alpha1.Host{Type: v1alpha1.HostExisting, Existing: &v1alpha1.ExistingHost{Context: "prod", Kubeconfig: "kc"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Declare(test.wishes, fallback)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := Declare(Wishes{Type: v1alpha1.HostExisting}, fallback); diag.Code(err) != diag.ExitUsage {
		t.Errorf("an existing cluster without its context: %v", err)
	}
}

func TestDefault(t *testing.T) {
	without := v1alpha1.HostKind // where neither is possible, preflight says what to install
	if embedded.Supported() == nil {
		without = v1alpha1.HostEmbedded
	}
	if got := Default(func() error { return errors.New("no engine") }); got != without {
		t.Errorf("%s without an engine, want %s", got, without)
	}
	if got := Default(func() error { return nil }); got != v1alpha1.HostKind {
		t.Errorf("%s where an engine answers, want kind", got)
	}
}

// Each type that fleet.yaml may declare is one that can be made, and the traits are those of no other.
func TestEachTypeIsKnown(t *testing.T) {
	seen := map[Traits]v1alpha1.HostType{TraitsOf(v1alpha1.Host{Type: "cloud"}, "v1.36.3"): "an unknown type"}
	for _, hostType := range v1alpha1.HostTypes() {
		declared := v1alpha1.Host{Type: hostType, Existing: &v1alpha1.ExistingHost{Kubeconfig: "missing", Context: "c"}}
		// What is missing on this machine is another error: an engine, the kubeconfig, Linux.
		if _, err := New(t.Context(), "mgmt", declared, state.Store{Dir: t.TempDir()}.Cluster("mgmt"),
			t.TempDir()); err != nil && diag.Hint(err) == "" {
			t.Errorf("%s: %v", hostType, err)
		}
		traits := TraitsOf(declared, "v1.36.3")
		if other, ok := seen[traits]; ok {
			t.Errorf("%s and %s have the same traits %+v", hostType, other, traits)
		}
		seen[traits] = hostType
		if others := hostType.Elsewhere(); traits.Elsewhere != others {
			t.Errorf("%s: it is others' (%t), and its traits say %t", hostType, others, traits.Elsewhere)
		}
	}
	for hostType := range kinds {
		if !slices.Contains(v1alpha1.HostTypes(), hostType) {
			t.Errorf("%s can be made, and fleet.yaml cannot declare it", hostType)
		}
	}
	if _, err := New(t.Context(), "mgmt", v1alpha1.Host{Type: "cloud"}, state.Store{Dir: t.TempDir()}.Cluster("mgmt"), ""); err == nil {
		t.Error("an unknown type was made")
	}
}

func TestFindsTheHostThatIsDeclared(t *testing.T) {
	if embedded.Supported() != nil {
		return // there is no such host
	}
	h, err := Find(t.Context(), "mgmt", v1alpha1.HostEmbedded, state.Store{Dir: t.TempDir()}.Cluster("mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.(*embedded.Host); !ok {
		t.Errorf("it is a %T", h)
	}
}

func TestFindsTheEmbeddedHostByItsFolder(t *testing.T) {
	if embedded.Supported() != nil {
		return // there is no such folder to find
	}
	cluster := state.Store{Dir: t.TempDir()}.Cluster("mgmt")
	if err := os.MkdirAll(cluster.Path(embeddedDir), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := Find(t.Context(), "mgmt", "", cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.(*embedded.Host); !ok {
		t.Errorf("found a %T", h)
	}
}
