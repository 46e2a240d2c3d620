//go:build e2e

package handover

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// stopped stops the API server's process as SIGSTOP does: the kernel still takes connections and bytes for it, and nobody answers. It
// returns a function that lets it go on.
func (s *side) stopped(t *testing.T) (goOn func()) {
	t.Helper()
	port := s.host[strings.LastIndex(s.host, ":")+1:]
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		command, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(command, []byte("kube-apiserver\x00")) ||
			!bytes.Contains(command, []byte("--secure-port="+port+"\x00")) {
			continue // it may have ended meanwhile
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = unix.Kill(pid, unix.SIGSTOP)
		}
		if err != nil {
			t.Fatal(err)
		}
		return sync.OnceFunc(func() {
			if err := unix.Kill(pid, unix.SIGCONT); err != nil {
				t.Errorf("let the API server of %s go on: %v", s.name, err)
			}
		})
	}
	t.Fatalf("the API server of %s has no process", s.name)
	return nil
}

const (
	// answerWithin bounds a request of TestHung. It is longer than the time after which the progress names a side.
	answerWithin = 8 * time.Second
	// endsWithin bounds a run whose side hangs: two requests, and what a busy machine adds.
	endsWithin = time.Minute
)

// hands returns the options of a hand-over that asks both sides itself, with no proxy between.
func (w *world) hands(t *testing.T, progress func(handover.Progress)) handover.Options {
	t.Helper()
	o := handover.Options{Fleet: "bed", BlockMove: waitTime, Drain: waitTime, Progress: progress}
	for given, s := range map[*handover.Side]*side{&o.Source: w.source, &o.Target: w.target} {
		client, err := kube.New(s.kubeconfig, kube.Options{Timeout: answerWithin})
		if err != nil {
			t.Fatal(err)
		}
		*given = handover.Side{Name: s.name, Client: client}
	}
	return o
}

// TestHung stops the API server of one side in the middle of the copy. The progress names this side while it is silent, the hand-over ends
// with an error that names it too, and the same hand-over goes on once the API server does.
func TestHung(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	forEach(t, b, "an API server hangs", []string{"source", "target"}, func(t *testing.T, w *world, name string) {
		hangs := w.source
		if name == "target" {
			hangs = w.target
		}
		w.restore(t.Context(), t, w.beginning)
		var mu sync.Mutex
		var since time.Time
		var told []string
		goOn := func() {}
		report, err := handover.Run(t.Context(), w.hands(t, func(p handover.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p.Phase == handover.PhaseCopied && p.Done > 0 && since.IsZero() {
				since, goOn = time.Now(), hangs.stopped(t)
			}
			if p.Silent != "" {
				told = append(told, p.String())
			}
		}))
		defer goOn()
		took := time.Since(since)
		if silent, ok := errors.AsType[*handover.SilentError](err); !ok || silent.Side != name || took > endsWithin {
			t.Fatalf("the %s hangs: after %s %+v, %v", name, took, report, err)
		}
		t.Logf("the %s hangs: after %s: %v", name, took.Round(time.Second), err)
		want := name + " does not answer at " + hangs.host + " (copying the objects to target: "
		if len(told) == 0 || !strings.HasPrefix(told[0], want) {
			t.Errorf("the %s hangs, and the progress says %q, not %q", name, told, want)
		}
		goOn()
		if _, err := handover.Run(t.Context(), w.hands(t, nil)); err != nil {
			t.Fatalf("the %s answers again: %v", name, err)
		}
		b.hold(t, b.judge(w).handedOver(t.Context(), t), "the "+name+" hung", outcome{})
	})
}

// TestTransferTellsTheWayOn kills a transfer in the middle, and runs it again while one of the sides does not answer: the hint names the
// way on, and the way back for a side that is gone for good.
func TestTransferTellsTheWayOn(t *testing.T) {
	ctx := t.Context()
	w := newReleased(ctx, t)
	machine := w.restore(ctx, t, w.beginning)
	f := w.followed(ctx, t)
	var lost string
	begun := func(asked string) bool { return asked == lost }
	o := w.execute(ctx, t, f.command(t, false), transferCommand, machine, &run{judge: kill{12, killAfter}.strike})
	if len(o.struck) == 0 {
		t.Fatalf("it came to its end: exit %d\n%s", o.code, o.output)
	}
	for side, back := range map[string]string{
		"source": "`fleetctl cluster transfer early --to eu --abort --source-is-gone`",
		"target": "`fleetctl cluster transfer early --abort --without-target`",
	} {
		lost = side
		o := w.execute(ctx, t, f.command(t, false), transferCommand, machine, &run{away: begun})
		if o.code == 0 || !strings.Contains(o.output, "run the same command again when it answers") || !strings.Contains(o.output, back) {
			t.Errorf("the %s does not answer: exit %d, and no way on:\n%s", side, o.code, o.output)
		}
	}
	if o := w.execute(ctx, t, f.command(t, false), transferCommand, machine, &run{}); o.code != 0 {
		t.Fatalf("both answer: exit %d\n%s", o.code, o.output)
	}
	arrived(t, w, f, "after both were silent")
}

// TestTokenExpires lets a token expire in the middle of a transfer, on either side. The transfer ends at once with an error, nothing is
// lost, and with a new token the same command goes on. Until then, no hint calls the side gone.
func TestTokenExpires(t *testing.T) {
	ctx := t.Context()
	w := newReleased(ctx, t)
	for side, name := range map[string]string{"source": "root", "target": "eu"} {
		machine := w.restore(ctx, t, w.beginning)
		f := w.followed(ctx, t)
		r := &run{}
		r.expired = func(asked string) bool { return asked == side && r.count() >= 12 }
		o := w.execute(ctx, t, f.command(t, false), transferCommand, machine, r)
		if o.code == 0 || o.took > endsWithin || !strings.Contains(o.output, "hand it over: ") ||
			!strings.Contains(o.output, "the API server of "+name+" at ") ||
			!strings.Contains(o.output, "get a new kubeconfig of "+name) {
			t.Errorf("the token of the %s expires: exit %d after %s\n%s", side, o.code, o.took, o.output)
		}
		if lost := neither(ctx, t, w); len(lost) > 0 {
			t.Errorf("lost: %v", lost)
		}
		again := w.execute(ctx, t, f.command(t, false), transferCommand, machine,
			&run{expired: func(asked string) bool { return asked == side }})
		if again.code == 0 || !strings.Contains(again.output, "credentials have not expired") ||
			strings.Contains(again.output, "gone for good") {
			t.Errorf("the token of the %s has expired: exit %d\n%s", side, again.code, again.output)
		}
		if o := w.execute(ctx, t, f.command(t, false), transferCommand, machine, &run{}); o.code != 0 {
			t.Fatalf("the %s has a new token: exit %d\n%s", side, o.code, o.output)
		}
		arrived(t, w, f, "after the token of the "+side+" had expired")
	}
}
