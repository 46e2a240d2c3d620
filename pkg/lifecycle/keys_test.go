package lifecycle

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Several commands that come by new keys at once keep all of them.
func TestKeepKeys(t *testing.T) {
	deps := management.Deps{Store: state.Store{Dir: t.TempDir()}, LookupEnv: func(string) (string, bool) { return "", false }}
	const many = 8
	made := make(secret.Keys, many)
	var group sync.WaitGroup
	for i := range made {
		var err error
		if made[i], err = secret.NewKey(); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			there, err := localKeys(deps, "acme", "")
			if err == nil {
				err = keepKeys(t.Context(), deps, "acme", append(secret.Keys{made[i]}, there...))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	content, err := os.ReadFile(deps.Store.KeyFile("acme"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := secret.ParseKeys(content)
	if err != nil {
		t.Fatal(err)
	}
	want, got := made.Recipients(), kept.Recipients()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%d of %d keys are kept", len(got), many)
	}
}
