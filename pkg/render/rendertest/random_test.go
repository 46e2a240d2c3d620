package rendertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A seed says all about a fleet: what fails with it can be looked at again.
func TestRandomIsTheSameForASeed(t *testing.T) {
	for seed := range uint64(3) {
		one, err := Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		two, err := Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one, two); diff != "" {
			t.Fatalf("seed %d (-one +another)\n%s", seed, diff)
		}
	}
}
