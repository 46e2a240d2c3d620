//go:build e2e

package handover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// envVerb makes a process of this test binary the program under test: it says what to do.
const envVerb = "FLEETCTL_HANDOVER_VERB"

// engine is the hand-over itself, in a process of its own.
func engine(t testing.TB) program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program{name: "hand-over", limit: 3 * time.Minute, command: func(ctx context.Context, verb, source, target, home string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, self, source, target)
		cmd.Env = append(os.Environ(), envVerb+"="+verb, "HOME="+home, "XDG_STATE_HOME="+home, "XDG_CONFIG_HOME="+home)
		return cmd
	}}
}

// be is the program under test.
func be(verb string, args []string) int {
	signal.Ignore(syscall.SIGXFSZ) // of a full disk: see run.full
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := work(ctx, verb, args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		fmt.Fprintln(os.Stderr, "hint:", diag.Hint(err))
		return 1
	}
	return 0
}

func work(ctx context.Context, verb string, args []string) error {
	options := handover.Options{
		Fleet: "bed", BlockMove: waitTime, Drain: waitTime,
		Progress: func(p handover.Progress) {
			fmt.Println(time.Now().Format("05.000"), p.Phase, p.Detail, p.Done, p.Total)
		},
	}
	for name, side := range map[string]*handover.Side{"source": &options.Source, "target": &options.Target} {
		file := args[0]
		if name == "target" {
			file = args[1]
		}
		kubeconfig, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		client, err := kube.New(kubeconfig, kube.Options{})
		if err != nil {
			return err
		}
		*side = handover.Side{Name: name, Client: client}
	}
	switch verb {
	case transferCommand, abortCommand:
		return transferAsCommand(ctx, verb == abortCommand)
	case backupCommand:
		return backupAsCommand(ctx, options.Source)
	case pivotCommand:
		return pivotAsCommand(ctx, options)
	case detach:
		options.Target, options.Select = handover.Side{}, []kube.Key{{Namespace: "team-a", Name: "alpha"}}
		_, err := handover.Detach(ctx, options)
		return err
	case transfer:
		options.Select = []kube.Key{{Namespace: "team-a", Name: "alpha"}}
		_, err := handover.Run(ctx, options)
		return err
	case abortTransfer:
		options.Select = []kube.Key{{Namespace: "team-a", Name: "alpha"}}
		_, err := handover.Abort(ctx, options)
		return err
	case backUp:
		return writeSnapshot(ctx, options.Source)
	case restore:
		return readSnapshot(ctx, options, handover.Restore)
	case makeStandby, makeAnothers:
		of := "source"
		if verb == makeAnothers {
			of = "other"
		}
		_, err := handover.MakeStandby(ctx, handover.StandbyOptions{
			Fleet: options.Fleet, Target: options.Target, Of: of, Drain: options.Drain, Progress: options.Progress,
		})
		return err
	case try:
		return readSnapshot(ctx, options, handover.Try)
	case activate:
		options.Target.Standby = true
		return readSnapshot(ctx, options, handover.Restore)
	case abortActivate:
		options.Target.Standby = true
		_, err := handover.AbortRestore(ctx, options.Target, options.Progress)
		return err
	case relieve:
		options.Target.Standby = true
		_, err := handover.Run(ctx, options)
		return err
	case abortLost:
		_, err := handover.AbortWithoutSource(ctx, options.Target, func(context.Context) error { return nil }, options.Progress)
		return err
	case abortWithout:
		options.Target.Standby = true
		_, err := handover.AbortWithoutSource(ctx, options.Target, nil, options.Progress)
		return err
	case abortRelieve:
		options.Target.Standby = true
		_, err := handover.Abort(ctx, options)
		return err
	case fence:
		_, err := handover.FenceAround(ctx, around(options))
		return err
	case takeIn:
		_, err := handover.TakeIn(ctx, around(options))
		return err
	case abortRestore:
		_, err := handover.AbortRestore(ctx, options.Target, options.Progress)
		return err
	case abortAlone:
		options.Target = handover.Side{}
		_, err := handover.AbortAlone(ctx, options)
		return err
	case handOver:
		_, err := handover.Run(ctx, options)
		return err
	case abort:
		_, err := handover.Abort(ctx, options)
		return err
	}
	return errors.New("unknown verb " + verb)
}
