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
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// askingCommands are command lines of all commands that ask a management cluster. A line with THERE gives the kubeconfig, and the others
// work with the record of this machine.
var askingCommands = []string{
	"backup --to DIR/snapshots THERE",
	"bootstrap --timeout 3s",
	"cluster detach demo --yes --timeout 3s THERE",
	"cluster drain demo --yes --timeout 3s THERE",
	"cluster kubeconfig demo THERE",
	"cluster pause demo --now",
	"cluster remove demo --yes --commit --wait --timeout 3s THERE",
	"cluster upgrade demo --version v1.37.0 --dry-run THERE",
	"connect THERE",
	"credentials --timeout 3s",
	"doctor --timeout 3s",
	"drill --from DIR/snapshots --timeout 3s",
	"environment pause dev --now",
	"init --timeout 3s",
	"kubeconfig demo THERE",
	"orphans --timeout 3s",
	"pivot --to demo --timeout 3s",
	"promote --status THERE",
	"restore --from DIR/snapshots --timeout 3s",
	"status --timeout 3s THERE",
	"status --all --timeout 3s",
	"status demo --timeout 3s THERE",
	"support-bundle --file DIR/bundle.tar.gz --timeout 3s",
	"teardown --yes --delete-clusters --timeout 3s",
	"upgrade apply --timeout 3s",
	"why demo --timeout 3s THERE",
}

// succeeding are the commands that say what they could not look at, and do the rest.
var succeeding = []string{"cluster upgrade", "support-bundle"}

// notAsking are the commands with a flag about a management cluster that ask none.
var notAsking = map[string]string{
	"adopt":              "it writes the context and the kubeconfig into fleet.yaml",
	"bundle create":      "it packs what fleet.yaml names",
	"cluster add":        "it changes the fleet repo alone",
	"cluster list":       "it reads the fleet repo alone",
	"host delete":        "an existing cluster is no host that fleetctl made",
	"host issuer export": "only an embedded host has an issuer",
	"host logs":          "only an embedded host has logs",
	"host start":         "only a host of this machine can be started",
	"host stop":          "only a host of this machine can be stopped",
	"identity add":       "it changes the fleet repo alone",
	"identity remove":    "it changes the fleet repo alone",
	"management add":     "it changes the fleet repo alone",
	"pool list":          "it reads the fleet repo alone",
	"provider add":       "it changes the fleet repo alone",
	"provider list":      "it reads the fleet repo alone",
	"provider remove":    "it changes the fleet repo alone",
	"standby":            "it only shows its help",
	"standby add":        "it changes the fleet repo alone",
	"standby remove":     "it changes the fleet repo alone",
	"upgrade plan":       "it looks for releases on other servers, and asks the management cluster what status asks it",
}

// TestEveryAskingCommandIsDriven fails for a command with a flag about a management cluster that TestHostileAPIServers does not drive.
func TestEveryAskingCommandIsDriven(t *testing.T) {
	driven := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		asks := slices.ContainsFunc([]string{"kubeconfig", "context", "management", "host-kubeconfig"}, func(flag string) bool {
			return c.Flags().Lookup(flag) != nil && c.InheritedFlags().Lookup(flag) == nil
		})
		isDriven := slices.ContainsFunc(askingCommands, func(line string) bool { return strings.HasPrefix(line+" ", path+" ") })
		switch excepted := notAsking[path] != ""; {
		case isDriven && excepted:
			t.Errorf("fleetctl %s is driven and is an exception", path)
		case asks && !isDriven && !excepted:
			t.Errorf("fleetctl %s is not driven: give it a line in askingCommands, or in notAsking with a reason", path)
		case isDriven:
			driven++
		}
	}
	walk(cmd.Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
	if driven < 20 {
		t.Errorf("only %d commands are driven", driven)
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
	"web page":  {answer: typed("text/html", http.StatusOK, "<!DOCTYPE html><html><title>"+evil+"</title>Bearer "+canary)},
	"null":      {answer: typed("application/json", http.StatusOK, "null")},
	"deep":      {answer: typed("application/json", http.StatusOK, strings.Repeat(`{"items":[`, 20_000))},
	"nothing":   {answer: func(*hostileServer, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
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
	for _, proxy := range []string{"HTTPS_PROXY", "HTTP_PROXY"} { // no request leaves this machine, for releases for instance
		t.Setenv(proxy, "http://127.0.0.1:1")
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, hostile := range hostileAnswers {
		t.Run(name, func(t *testing.T) {
			s := newHostileServer(t, hostile.answer)
			var group errgroup.Group
			group.SetLimit(16)
			for _, line := range askingCommands {
				if hostile.silent && !strings.Contains(line, "--timeout") {
					continue // the limit of a single request is tested in pkg/kube
				}
				dir := t.TempDir()
				group.Go(func() error {
					drive(t, s, dir, line, hostile.lives)
					return nil
				})
			}
			_ = group.Wait()
			if n := s.stolen.Load(); n > 0 {
				t.Errorf("another server got the credential %d times", n)
			}
			if _, err := os.Stat(s.ran); err == nil {
				t.Error("a command in a kubeconfig of the API server ran")
			}
			if n := s.sent.Load(); n > 512<<20 {
				t.Errorf("the API server sent %d MiB", n>>20)
			}
		})
	}
}

// drive runs one command in a fleet repo of its own.
func drive(t *testing.T, s *hostileServer, dir, line string, lives bool) {
	const most = 2 * time.Minute // a command takes some seconds; a busy machine makes more of them
	if err := hostileFleet(s, dir); err != nil {
		t.Error(err)
		return
	}
	there := "--kubeconfig " + filepath.Join(dir, "kubeconfig") + " --context there"
	args := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "THERE", there), "DIR", dir))
	args = append(args, "--repo", filepath.Join(dir, "fleet"), "--state-dir", filepath.Join(dir, "state"), "--cache-dir",
		filepath.Join(dir, "cache"), "--config", filepath.Join(dir, "config.yaml"))
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
	if !lives && (code == 0 && !succeeds || !strings.Contains(said, "hint: ") && !strings.Contains(said, s.Listener.Addr().String())) {
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
	if !lives && strings.Contains(said, canary) { // hostile objects have it in their names
		t.Errorf("%s: it shows the credential\n%s", line, said)
	}
}

// hostileFleet writes a fleet repo and this machine's record of its management cluster, whose API server is s.
func hostileFleet(s *hostileServer, dir string) error {
	repo := filepath.Join(dir, "fleet")
	if err := os.CopyFS(repo, os.DirFS(filepath.Join("..", "..", "examples", "laptop"))); err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	raw, err := os.ReadFile(filepath.Join(repo, "fleet.yaml"))
	if err != nil {
		return err
	}
	declared := strings.NewReplacer(
		"  environments:", "  git:\n    url: https://127.0.0.1:1/fleet.git\n  environments:",
		"type: kind", "type: existing\n      existing:\n        kubeconfig: "+kubeconfig+"\n        context: there",
	).Replace(string(raw))
	record, err := json.Marshal(map[string]string{
		"formatVersion": "1", "name": "laptop", "fleet": "laptop", "repo": repo, "gitURL": "https://127.0.0.1:1/fleet.git",
		"hostType": "existing", "context": "there", "kubeconfigSource": kubeconfig,
	})
	if err != nil {
		return err
	}
	known := filepath.Join(dir, "state", "clusters", "laptop")
	if err := os.MkdirAll(known, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		filepath.Join(repo, "fleet.yaml"):    []byte(declared),
		filepath.Join(known, "cluster.json"): record,
		filepath.Join(dir, "config.yaml"):    nil,
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return err
		}
	}
	for _, name := range []string{kubeconfig, filepath.Join(known, "kubeconfig"), filepath.Join(known, "workload-kubeconfig")} {
		if err := clientcmd.WriteToFile(*s.kubeconfig(), name); err != nil {
			return err
		}
	}
	return os.Mkdir(filepath.Join(dir, "snapshots"), 0o700)
}
