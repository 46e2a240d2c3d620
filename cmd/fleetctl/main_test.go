package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fleetctl": main})
}

// TestScripts drives the real program. No script may reach a container engine, a cluster or the user's own files: PATH holds no
// engine, and all folders are the script's own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/home/.config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/home/.local/state")
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/home/.cache")
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GIT_CONFIG_GLOBAL", env.WorkDir+"/gitconfig")
			return nil
		},
	})
}
