package testprograms

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// starts bounds how often Start tries.
const starts = 4

// Start runs the API server that environment describes until t ends. envtest looks for free ports, gives them back before its programs take
// them, and where somebody was faster tries again with the same ones: so each try here is with a new environment, which has ports of its
// own.
func Start(t testing.TB, environment func() *envtest.Environment) *envtest.Environment {
	t.Helper()
	for n := 1; ; n++ {
		env := environment()
		_, err := env.Start()
		if err == nil {
			t.Cleanup(func() {
				if err := env.Stop(); err != nil {
					t.Errorf("stop the API server: %v", err)
				}
			})
			return env
		}
		if n == starts {
			t.Fatalf("start the API server: %v", err)
		}
		t.Logf("start the API server: %v; again, with other ports", err)
		_ = env.Stop() // what of it runs
	}
}
