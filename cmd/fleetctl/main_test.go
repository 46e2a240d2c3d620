package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == confine.Argument { // a test that calls cmd.Main itself has this program render
		main()
	}
	testscript.Main(alone{m}, map[string]func(){
		"fleetctl": main,
		"ssh":      func() { os.Exit(gittest.SSHClient(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }, // not every machine has one
		// What an embedded host would run says its version, and no more.
		"etcd":                    func() { fmt.Println("etcd Version: 3.6.16") },
		"kube-apiserver":          func() { fmt.Println("Kubernetes v1.36.2") },
		"kube-controller-manager": func() { fmt.Println("Kubernetes v1.36.2") },
	})
}

// alone runs tests that call cmd.Main themselves: their requests leave this machine for nothing, and they see no cluster of the user's. The
// environment is the same for all of them, so that they run side by side.
type alone struct{ tests testscript.TestingM }

// Run implements testscript.TestingM.
func (a alone) Run() int {
	empty, err := os.MkdirTemp("", "fleetctl-test-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(empty)
	for name, value := range map[string]string{
		"HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "", "KUBECONFIG": filepath.Join(empty, "none"),
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return a.tests.Run()
}

// TestScripts drives the real program. No script may reach a container engine, a cluster or the user's own files: PATH holds
// fleetctl and programs that scripts name, and all folders are the script's own. Servers that scripts talk to are real ones, on the
// loopback address (see script_servers_test.go); commands of our own are in script_commands_test.go.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: commands(),
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
		Setup: func(env *testscript.Env) error {
			t, ok := env.T().(testing.TB)
			if !ok {
				return os.ErrInvalid
			}
			env.Values[testKey{}] = t
			env.Values[gitServerKey{}] = &gitServer{}
			env.Values[silentCallsKey{}] = new(*silentCalls)
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(home, ".local", "state"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
			env.Setenv("ELSEWHERE", t.TempDir()) // outside of a fleet repo that is the whole working folder
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(env.WorkDir, "gitconfig"))
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			if err := identify(env.WorkDir); err != nil {
				return err
			}
			env.Setenv("OWN_PROGRAMS", ownPrograms(env.Getenv("PATH")))
			path, err := programs(t, env.Getenv("PATH"))
			env.Setenv("PATH", path)
			return err
		},
	})
}

// identify tells git who commits, where the script itself does not.
func identify(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "gitconfig"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("[user]\nname = Script\nemail = script@example.com\n")
	return errors.Join(err, f.Close())
}

// ownPrograms is the folder of the programs that TestMain names, the first of a PATH.
func ownPrograms(path string) string {
	own, _, _ := strings.Cut(path, string(filepath.ListSeparator))
	return own
}

// testKey is where a script keeps its test.
type testKey struct{}

// programs makes a PATH of fleetctl, which testscript has put first, and of what scripts and fleetctl run. A machine's container
// engine is not among them.
func programs(t testing.TB, path string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"git", "sh", "cat"} {
		found, err := exec.LookPath(name)
		if err != nil {
			continue // the script that needs it says so
		}
		if err := os.Symlink(found, filepath.Join(dir, filepath.Base(found))); err != nil {
			return "", err
		}
	}
	own := ownPrograms(path)
	return own + string(filepath.ListSeparator) + dir, nil
}
