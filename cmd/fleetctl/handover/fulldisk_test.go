//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/state"
	fleettransfer "github.com/fleetctl/fleetctl/pkg/transfer"
)

const fleetOfTwo = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "URL", username: git, caFile: ca.pem}
  environments: [{name: prod}]
  managementClusters:
  - name: root
    cloud: root
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
  - name: eu
    cloud: eu
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
`

// twoInOne is a fleet repo with two management clusters on one machine. Its fields are all that a command gets to know.
type twoInOne struct {
	Dir, Store, Cache, Token string
	// Full says that the disk takes nothing from the beginning.
	Full bool

	server *gittest.HTTPS
}

func newTwoInOne(t *testing.T) *twoInOne {
	t.Helper()
	t.Setenv("CI", "true") // nobody has told git a name
	server := gittest.NewHTTPS(t, gittest.Options{})
	f := &twoInOne{Dir: filepath.Join(t.TempDir(), "fleet"), Store: t.TempDir(), Cache: t.TempDir(), Token: server.Token, server: server}
	server.Seed(t, "main", map[string]string{
		"fleet.yaml": strings.ReplaceAll(fleetOfTwo, "URL", server.URL), "ca.pem": string(server.CA),
		fleetrepo.IdentityFile: string(fleetrepo.IdentityContent("7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11")),
	})
	if _, err := gitrepo.Clone(t.Context(), server.URL, gitrepo.Auth{Username: server.Username, Token: server.Token, CA: server.CA},
		"main", f.Dir); err != nil {
		t.Fatal(err)
	}
	o := fleetrepo.AddOptions{Name: "early", Environment: "prod", ManagementCluster: "root", Flavour: "docker", KubernetesVersion: "v1.36.3"}
	_, err := change.Make(t.Context(), change.Options{
		Dir: f.Dir, Git: change.Credentials{Token: f.Token}, Push: true, CacheDir: f.Cache,
		Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.Add(o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *twoInOne) deps() management.Deps {
	return management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: f.Store}, CacheDir: f.Cache,
		LookupEnv: func(string) (string, bool) { return "", false },
	}
}

// envCommand has the fields of a twoInOne for a process that runs a command in it.
const envCommand = "FLEETCTL_HANDOVER_COMMAND"

// transferAsCommand is the program under test that is all of `fleetctl cluster transfer`.
func transferAsCommand(ctx context.Context, abort bool) error {
	var f twoInOne
	if err := json.Unmarshal([]byte(os.Getenv(envCommand)), &f); err != nil {
		return err
	}
	if f.Full {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}); err != nil {
			return err
		}
	}
	r, err := fleettransfer.Run(ctx, f.deps(), fleettransfer.Options{
		Cluster: "prod/early", To: "eu", Abort: abort,
		Change: change.Options{Dir: f.Dir, Git: change.Credentials{Token: f.Token}, Push: !abort, CacheDir: f.Cache},
	})
	if err == nil {
		fmt.Println("outcome:", r.Outcome)
	}
	return err
}

// command is fleetctl on the machine that f is on.
func (f *twoInOne) command(t *testing.T, full bool) program {
	t.Helper()
	g := *f
	g.Full = full
	content, err := json.Marshal(&g)
	if err != nil {
		t.Fatal(err)
	}
	p := engine(t)
	run := p.command
	p.command = func(ctx context.Context, verb, source, target, home string) *exec.Cmd {
		cmd := run(ctx, verb, source, target, home)
		cmd.Env = append(cmd.Env, envCommand+"="+string(content))
		return cmd
	}
	return p
}

// TestFullDisk fills the disk of the machine that transfers a Cluster, before it begins and at writes of all phases: its state, the fleet
// repo, Git's objects, all that a command writes. The command gives up and loses nothing. Run again with space, it comes to its end. An
// abort of a killed command works on a full disk.
func TestFullDisk(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	w := newReleased(ctx, t)
	begin := func(t *testing.T) (f *twoInOne, machine string) {
		t.Helper()
		machine = w.restore(ctx, t, w.beginning)
		return w.followed(ctx, t), machine
	}
	f, machine := begin(t)
	whole := w.execute(ctx, t, f.command(t, false), transferCommand, machine, &run{})
	if whole.code != 0 || !strings.Contains(whole.output, "outcome: transferred") {
		t.Fatalf("exit %d\n%s", whole.code, whole.output)
	}
	arrived(t, w, f, "without a fault")
	const parts = 6
	for part := range parts + 1 {
		at := part * whole.count() / parts // 0: before it begins
		t.Run(fmt.Sprintf("from write %d of %d on", at, whole.count()), func(t *testing.T) {
			f, machine := begin(t)
			r := &run{}
			killed := part%2 == 1
			r.judge = func(write write) deed {
				switch {
				case write.number != at:
				case killed:
					return killAfter
				default:
					r.full()
				}
				return pass
			}
			o := w.execute(ctx, t, f.command(t, at == 0), transferCommand, machine, r)
			if !killed && o.code == 0 && !strings.Contains(o.output, "outcome: transferred") ||
				!killed && o.code != 0 && !strings.Contains(o.output, "file too large") {
				t.Errorf("exit %d\n%s", o.code, o.output)
			}
			if lost := neither(ctx, t, w); len(lost) > 0 {
				t.Errorf("lost: %v", lost)
			}
			if killed {
				aborted := w.execute(ctx, t, f.command(t, true), abortCommand, machine, &run{})
				t.Logf("an abort on the full disk: exit %d: %s", aborted.code, lastLine(aborted.output))
				if aborted.code != 0 && !strings.Contains(aborted.output, "this cannot be undone") {
					t.Errorf("an abort on the full disk: exit %d\n%s", aborted.code, aborted.output)
				}
				if aborted.code == 0 {
					for _, fault := range held("the source", w.sourceBefore, w.source.read(ctx, t)) {
						t.Error(fault)
					}
				}
			}
			again := w.execute(ctx, t, f.command(t, false), transferCommand, machine, &run{})
			if again.code != 0 {
				t.Fatalf("after %q, with space: exit %d\n%s", lastLine(o.output), again.code, again.output)
			}
			arrived(t, w, f, "with space")
		})
	}
}

// neither lists the objects that neither side has any more.
func neither(ctx context.Context, t *testing.T, w *world) []string {
	t.Helper()
	source, target := w.source.read(ctx, t), w.target.read(ctx, t)
	var lost []string
	for i := range w.sourceBefore {
		if i.namespace == "early" && source[i] == nil && target[i] == nil {
			lost = append(lost, i.String())
		}
	}
	return lost
}

// arrived fails the test where the Cluster is not at the target alone, or Git does not say so.
func arrived(t *testing.T, w *world, f *twoInOne, story string) {
	t.Helper()
	ctx := t.Context()
	source, target := w.source.read(ctx, t), w.target.read(ctx, t)
	for i := range w.sourceBefore {
		if i.namespace != "early" || i.kind != "Cluster" && i.kind != "Machine" && i.kind != "MachineDeployment" {
			continue
		}
		if source[i] != nil || target[i] == nil {
			t.Errorf("%s: %s is at the source: %t, at the target: %t", story, i, source[i] != nil, target[i] != nil)
		}
	}
	for _, faults := range [][]string{held("the target", w.sourceBefore, target), fences("the source", source), fences("the target", target)} {
		for _, fault := range faults {
			t.Errorf("%s: %s", story, fault)
		}
	}
	f.server.File(t, "main", "providers/eu/v1/clusters/prod/early/cluster.yaml")
	for _, s := range []*side{w.source, w.target} {
		if j, err := handover.ReadJournal(ctx, clientOf(t, s)); err != nil || j.Active() {
			t.Errorf("%s: the journal of %s says %+v, %v", story, s.name, j, err)
		}
	}
}
