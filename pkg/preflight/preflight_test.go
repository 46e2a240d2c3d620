package preflight_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

func TestRunKeepsOrderAndRunsSideBySide(t *testing.T) {
	second := make(chan struct{})
	reports := preflight.Run(t.Context(),
		preflight.Check{Name: "first", Run: func(ctx context.Context) preflight.Result {
			select { // ends only if the second runs at the same time
			case <-second:
				return preflight.OK("fine")
			case <-ctx.Done():
				return preflight.Fail("", "ran alone")
			}
		}},
		preflight.Check{Name: "second", Run: func(context.Context) preflight.Result {
			close(second)
			return preflight.Fail("do it", "no %s", "luck")
		}},
	)
	if reports[0].Name != "first" || reports[0].Status != preflight.StatusOK {
		t.Errorf("first report: %+v", reports[0])
	}
	if reports[1].Name != "second" || reports[1].Summary != "no luck" || reports[1].Hint != "do it" {
		t.Errorf("second report: %+v", reports[1])
	}
}

func TestPortOfAnAddressThatIsNotHere(t *testing.T) {
	// An address of documentation (RFC 5737) is no machine's.
	if got := preflight.Port("203.0.113.7", 1, "a test")(t.Context()); got.Status != preflight.StatusSkip {
		t.Errorf("got %+v", got)
	}
}

func TestRunReportsACheckThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("out of patience"))
	defer cancel()
	release := make(chan struct{})
	defer close(release)
	reports := preflight.Run(ctx, preflight.Check{Name: "stuck", Run: func(context.Context) preflight.Result {
		<-release
		return preflight.OK("late")
	}})
	if reports[0].Status != preflight.StatusFail || reports[0].Summary != "out of patience" {
		t.Errorf("report: %+v", reports[0])
	}
}

// A check that ran out of time says what it was waiting for, with what to do.
func TestRunLetsACheckSayWhatItWaitedFor(t *testing.T) {
	for _, says := range []string{"command sh gave no value", "command sh gave no value: out of patience"} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("out of patience"))
		defer cancel()
		got := preflight.Run(ctx, preflight.Check{Name: "slow", Run: func(ctx context.Context) preflight.Result {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond) // a program that is ended takes a moment
			return preflight.Fail("run it by hand", "%s", says)
		}})[0]
		if got.Status != preflight.StatusFail || got.Hint != "run it by hand" || !strings.Contains(got.Summary, "command sh gave no value") ||
			strings.Count(got.Summary, "out of patience") != 1 {
			t.Errorf("report: %+v", got)
		}
	}
}

// Whoever interrupts does not wait for a check that does not hear of it.
func TestRunEndsAtOnceWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release, began := make(chan struct{}), make(chan struct{})
	defer close(release)
	go func() { <-began; cancel() }()
	reports := preflight.Run(ctx, preflight.Check{Name: "stuck", Run: func(context.Context) preflight.Result {
		close(began)
		<-release
		return preflight.OK("late")
	}})
	if reports[0].Status != preflight.StatusFail || reports[0].Seconds > 2 {
		t.Errorf("report: %+v", reports[0])
	}
}

func TestNoEngineFailsOnceAndSkipsWhatDependsOnIt(t *testing.T) {
	calls := 0
	e := preflight.NewEngine(func(context.Context) (*engine.Engine, error) {
		calls++
		return nil, diag.Errorf("install one", "no container engine is installed")
	})
	reports := preflight.Run(t.Context(),
		preflight.Check{Name: "container engine", Run: e.CheckVersion}, preflight.Check{Name: "cgroups", Run: e.CheckCgroups},
		preflight.Check{Name: "memory", Run: e.CheckMemory}, preflight.Check{Name: "engine disk", Run: e.CheckStore},
		preflight.Check{Name: "engine socket", Run: e.CheckSocket})
	if calls != 1 {
		t.Errorf("the engine was looked for %d times", calls)
	}
	if n := reports.Count(preflight.StatusFail); n > 1 && reports[0].Hint != "install one" {
		t.Errorf("reports: %+v", reports)
	}
	for _, r := range reports[1:] {
		if r.Status != preflight.StatusSkip {
			t.Errorf("%s: %+v", r.Name, r.Result)
		}
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		folder string
		need   int64
		want   preflight.Status
	}{
		"enough":             {dir, 1, preflight.StatusOK},
		"not there yet":      {filepath.Join(dir, "a", "b"), 1, preflight.StatusOK},
		"too little":         {dir, 1 << 62, preflight.StatusFail},
		"a file in the way":  {file, 1, preflight.StatusFail},
		"below a plain file": {filepath.Join(file, "x"), 1, preflight.StatusFail},
	} {
		t.Run(name, func(t *testing.T) {
			if got := preflight.Disk(tc.folder, tc.need)(t.Context()); got.Status != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the check left files behind: %v", entries)
	}
}

func TestPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	check := preflight.Port("127.0.0.1", port, "the Git server")
	if got := check(t.Context()); got.Status != preflight.StatusFail || !strings.Contains(got.Summary, "the Git server") ||
		got.Hint == "" {
		t.Errorf("taken port: %+v", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := check(t.Context()); got.Status != preflight.StatusOK {
		t.Errorf("free port: %+v", got)
	}
}

func TestClock(t *testing.T) {
	built := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		now, past time.Time
		want      preflight.Status
	}{
		"after the build":         {built.AddDate(1, 0, 0), built, preflight.StatusOK},
		"same day, other zone":    {built.Add(-14 * time.Hour), built, preflight.StatusOK},
		"an empty battery":        {time.Unix(0, 0), built, preflight.StatusFail},
		"build without timestamp": {built, time.Time{}, preflight.StatusSkip},
	} {
		t.Run(name, func(t *testing.T) {
			got := preflight.Clock(func() time.Time { return tc.now }, tc.past)(t.Context())
			if got.Status != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
