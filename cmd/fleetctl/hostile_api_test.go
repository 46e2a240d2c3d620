package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/cmd/fleetctl/internal/traces"
	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// askingCommands are command lines of all commands that ask a management cluster. A line with THERE gives the kubeconfig, and the others
// work with the record of this machine. Lines with a part in inBigFleet run in the fleet of bigFleet, and the others in a small one.
var askingCommands = []string{
	"backup --to DIR/snapshots THERE",
	"bootstrap --timeout 3s",
	"channel pause main --now --management laptop THERE",
	"channel resume main --now",
	"cluster detach demo --yes --timeout 3s THERE",
	"cluster drain demo --yes --timeout 3s THERE",
	"cluster kubeconfig demo THERE",
	"cluster pause demo --now",
	"cluster pause demo --now THERE",
	"cluster remove demo --yes --commit --wait --timeout 3s THERE",
	"cluster resume demo --now",
	"cluster transfer demo --to second --abort --without-target --yes --timeout 3s",
	"cluster transfer demo --to second --commit --yes --timeout 3s",
	"cluster upgrade demo --version v1.37.0 --dry-run THERE",
	"connect THERE",
	"credentials --timeout 3s",
	"doctor --timeout 3s",
	"environment pause dev --now",
	"environment resume dev --now --management laptop THERE",
	"feature pause hello --now",
	"feature resume hello --now --management second THERE",
	"host list",
	"init --timeout 3s",
	"kubeconfig demo THERE",
	"orphans --timeout 3s",
	"pivot --to demo --timeout 3s",
	"promote --status THERE",
	"restore --management laptop --from DIR/snapshots --timeout 3s",
	"secret rotate --new-key --commit",
	"standby activate spare --hand-over --timeout 3s",
	"standby activate spare --timeout 3s",
	"standby refresh spare --timeout 3s",
	"status --timeout 3s THERE",
	"status --all --timeout 3s",
	"status demo --timeout 3s THERE",
	"support-bundle --file DIR/bundle.tar.gz --timeout 3s",
	"teardown --yes --delete-clusters --timeout 3s",
	"upgrade apply --timeout 3s",
	"why demo --timeout 3s THERE",
}

var inBigFleet = []string{"channel ", "environment ", "feature ", "restore ", "secret ", " second", " spare"}

// succeeding are the commands that say what they could not look at, and do the rest.
var succeeding = []string{"cluster upgrade", "host list", "support-bundle"}

// before are the commands that another server, which does not answer here, keeps from asking the API server.
var before = map[string]string{"promote": "it fetches from the remote first"}

// notAsking are the commands that ask no management cluster, by the reason.
var notAsking = map[string]string{
	"it reads or changes the fleet repo alone": `
		app add, app list, app remove, channel add, channel list, channel remove, chart add, chart list, chart remove, chart update, ci add,
		cluster add, cluster flux, cluster list, cluster scale, cluster show, cni add, cni list, cni remove, diff, environment add,
		environment list, environment remove, environment set, environment wire, feature add, feature disable, feature enable, feature list,
		feature remove, feature values, identity add, identity list, identity remove, lock, management add, management list,
		management remove, notification add, notification list, notification remove, pool add, pool list, pool remove, pool scale,
		provider add, provider list, provider remove, render, revert, secret edit, secret encrypt, standby add, standby list, standby remove,
		tenant add, tenant list, tenant remove, validate`,
	"it writes the context and the kubeconfig into fleet.yaml, and asks nobody": `adopt`,
	"it packs or reads files": `bundle create, bundle extract, bundle list, bundle verify`,
	"it restores into a host that it makes, whose API server is fleetctl's own": `drill, host exec`,
	"it is about fleetctl itself": `config view, version`,
	"it serves the fleet repo":    `git-serve`,
	"it is for hosts that fleetctl made on this machine, and its API server is one of these": `
		host delete, host issuer export, host logs, host run, host start, host stop`,
	"it looks for releases on other servers, and asks the management cluster what status asks it": `upgrade plan`,
}

// TestEveryAskingCommandIsDriven fails for a command that TestHostileAPIServers does not drive and that is no exception.
func TestEveryAskingCommandIsDriven(t *testing.T) {
	excepted := map[string]bool{}
	for _, commands := range notAsking {
		for command := range strings.SplitSeq(commands, ",") {
			excepted[strings.TrimSpace(command)] = true
		}
	}
	driven := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if c.HasSubCommands() || path == "help" || strings.HasPrefix(path, "completion") {
			return
		}
		isDriven := slices.ContainsFunc(askingCommands, func(line string) bool { return strings.HasPrefix(line+" ", path+" ") })
		switch {
		case isDriven && excepted[path]:
			t.Errorf("fleetctl %s is driven and is an exception", path)
		case !isDriven && !excepted[path]:
			t.Errorf("fleetctl %s is not driven: give it a line in askingCommands, or in notAsking with a reason", path)
		case isDriven:
			driven++
		}
		delete(excepted, path)
	}
	walk(cmd.Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
	if driven < 30 {
		t.Errorf("only %d commands are driven", driven)
	}
	for path := range excepted {
		t.Errorf("fleetctl %s is an exception, and no command", path)
	}
}

// hostileAnswers are the answers of hostile API servers, and of what stands in their place.
var hostileAnswers = map[string]struct {
	answer func(s *hostileServer, w http.ResponseWriter, r *http.Request)
	// lives means that the answers are those of an API server, so that a command may succeed.
	lives bool
	// silent means that an answer does not end, so that only commands with a time limit are driven.
	silent bool
}{
	"redirects to another server": {answer: func(s *hostileServer, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.other.URL+r.URL.Path+"?token="+canary, http.StatusTemporaryRedirect)
	}},
	"redirects in a circle": {answer: func(_ *hostileServer, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	}},
	"web page": {answer: typed("text/html", http.StatusOK, "<!DOCTYPE html><html><title>"+evil+"</title>Bearer "+canary)},
	"null":     {answer: typed("application/json", http.StatusOK, "null")},
	"deep":     {answer: typed("application/json", http.StatusOK, strings.Repeat(`{"items":[`, 20_000))},
	"nothing":  {answer: func(*hostileServer, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	"asks for a password": {answer: func(_ *hostileServer, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="`+evil+`"`)
		typed("text/plain", http.StatusUnauthorized, "Password: ")(nil, w, nil)
	}},
	"refuses":   {answer: typed("application/json", http.StatusForbidden, evilStatus(http.StatusForbidden))},
	"no user":   {answer: typed("application/json", http.StatusUnauthorized, evilStatus(http.StatusUnauthorized))},
	"not found": {answer: typed("application/json", http.StatusNotFound, evilStatus(http.StatusNotFound))},
	"error":     {answer: typed("application/json", http.StatusInternalServerError, evilStatus(http.StatusInternalServerError))},
	"pause of a day": {answer: func(_ *hostileServer, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "86400")
		typed("application/json", http.StatusTooManyRequests, evilStatus(http.StatusTooManyRequests))(nil, w, r)
	}, silent: true},
	"drops of an answer": {answer: func(_ *hostileServer, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}, silent: true},
	"no answer": {answer: func(_ *hostileServer, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, silent: true},
	"hostile objects": {answer: func(s *hostileServer, w http.ResponseWriter, r *http.Request) {
		s.hostileContent(w, r, 0, nil)
	}, lives: true},
	"many hostile objects": {answer: func(s *hostileServer, w http.ResponseWriter, r *http.Request) {
		s.hostileContent(w, r, 30, nil)
	}, lives: true},
	"a list without end": {answer: func(s *hostileServer, w http.ResponseWriter, r *http.Request) {
		s.hostileContent(w, r, 0, map[string]any{"continue": "again" + evil})
	}, lives: true},
	"null for objects": {answer: func(_ *hostileServer, w http.ResponseWriter, r *http.Request) {
		if !discovers(w, r) {
			typed("application/json", http.StatusOK, "null")(nil, w, r)
		}
	}, lives: true},
	"null in lists": {answer: func(_ *hostileServer, w http.ResponseWriter, r *http.Request) {
		if !discovers(w, r) {
			gv, kind, _, _ := asked(r)
			typed("application/json", http.StatusOK,
				fmt.Sprintf(`{"apiVersion":%q,"kind":"%sList","metadata":null,"items":[null,{},3,{"metadata":3,"spec":[],"status":"a"}]}`,
					gv, kind))(nil, w, r)
		}
	}, lives: true},
}

func typed(kind string, code int, body string) func(*hostileServer, http.ResponseWriter, *http.Request) {
	return func(_ *hostileServer, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func evilStatus(code int) string {
	raw, err := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": evil, "reason": evil, "code": code,
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestHostileAPIServers drives every command that asks a management cluster at API servers that answer with malice, or that are none. The
// command ends in time, with an error that says what to do. It shows no control character and no credential, and no other server gets the
// credential.
func TestHostileAPIServers(t *testing.T) {
	const most = 256 << 20 // bytes that one command takes
	big := bigFleet(t)
	for name, hostile := range hostileAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var group errgroup.Group
			group.SetLimit(16)
			for _, line := range askingCommands {
				if hostile.silent && !strings.Contains(line, "--timeout") {
					continue // the limit of a single request is tested in pkg/kube
				}
				s, dir := newHostileServer(t, hostile.answer), t.TempDir()
				group.Go(func() error {
					drive(t, s, big, dir, line, hostile.lives)
					command, _, _ := strings.Cut(line, " ")
					asks := before[command] == ""
					if asks && s.asked.Load() == 0 { // on a busy machine, the time may be over before it asks
						drive(t, s, big, t.TempDir(), strings.ReplaceAll(line, "--timeout 3s", "--timeout 1m"), hostile.lives)
					}
					if n := s.stolen.Load(); n > 0 {
						t.Errorf("%s: another server got the credential %d times", line, n)
					}
					if _, err := os.Stat(s.ran); err == nil {
						t.Errorf("%s: a command in a kubeconfig of the API server ran", line)
					}
					if n := s.sent.Load(); n > most {
						t.Errorf("%s: the API server sent %d MiB", line, n>>20)
					}
					if asks && s.asked.Load() == 0 {
						t.Errorf("%s: it did not ask the API server", line)
					}
					return nil
				})
			}
			_ = group.Wait()
		})
	}
}

// drive runs one command in a fleet repo of its own.
func drive(t *testing.T, s *hostileServer, big, dir, line string, lives bool) {
	const most = 2 * time.Minute // a command takes some seconds; a busy machine makes more of them
	args, err := commandIn(s, big, dir, line)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	var out, errs bytes.Buffer
	began := time.Now()
	code := cmd.Main(ctx, ui.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
	said := out.String() + errs.String()
	t.Logf("%s: exit %d after %s\n%s", line, code, time.Since(began).Round(time.Millisecond), errs.String())
	if ctx.Err() != nil {
		t.Errorf("%s: it did not end within %s\n%s", line, most, said)
	}
	succeeds := slices.ContainsFunc(succeeding, func(command string) bool { return strings.HasPrefix(line, command) })
	says := lives || succeeds && strings.HasPrefix(line, "host list") // which asks only whether the API server is ready
	if !says && (code == 0 && !succeeds || !strings.Contains(said, "hint: ") && !strings.Contains(said, s.Listener.Addr().String())) {
		t.Errorf("%s: exit %d, and it does not say what to do\n%s", line, code, said)
	}
	shown := strings.ReplaceAll(said, "\r\n", "\n") // which ends a line, too
	if bad := strings.IndexFunc(shown, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	}); bad >= 0 {
		t.Errorf("%s: it shows control characters\n%q", line, shown[max(0, bad-200):min(len(shown), bad+200)])
	}
	for printed := range strings.Lines(said) {
		if strings.HasPrefix(printed, "::") {
			t.Errorf("%s: a CI runner would act on %q", line, printed)
		}
	}
	if !lives && traces.Of(canary).In([]byte(said)) { // hostile objects have it in their names
		t.Errorf("%s: it shows the credential\n%s", line, said)
	}
}

// commandIn writes the fleet of a command line into dir, with s as the API server, and returns the arguments.
func commandIn(s *hostileServer, big, dir, line string) ([]string, error) {
	small := filepath.Join("..", "..", "examples")
	write := func() error { return hostileFleet(s, small, dir, "laptop") }
	if slices.ContainsFunc(inBigFleet, func(part string) bool { return strings.Contains(line, part) }) {
		write = func() error { return hostileFleet(s, big, dir, "laptop", "second", "spare") }
	}
	if err := write(); err != nil {
		return nil, err
	}
	if strings.HasPrefix(line, "orphans ") { // which asks management clusters only if the fleet has a cloud that can be listed
		if err := addProvider(dir, "aws"); err != nil {
			return nil, err
		}
	}
	there := "--kubeconfig " + filepath.Join(dir, "kubeconfig") + " --context there"
	args := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "THERE", there), "DIR", dir))
	args = append(args, "--repo", filepath.Join(dir, "fleet"), "--state-dir", filepath.Join(dir, "state"), "--cache-dir",
		filepath.Join(dir, "cache"), "--config", filepath.Join(dir, "config.yaml"))
	return args, nil
}
