package scaffold_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// The pipeline of GitLab writes one note on a merge request, and updates it with each push. Without a token it writes no note.
func TestNoteOnGitLab(t *testing.T) { writesOneNote(t, withCurl(t)) }

func writesOneNote(t *testing.T, path string) {
	t.Helper()
	script := noteScript(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "impact.md"), []byte("replaces 3 machines & more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	there, me := `[{"id":7,"type":null,"body":"LGTM"}]`, "{}"
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("PRIVATE-TOKEN") != "glpat" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch {
		case r.URL.Path == "/api/v4/user":
			fmt.Fprint(w, me)
			return
		case r.Method == http.MethodGet:
			fmt.Fprint(w, there)
			return
		}
		calls = append(calls, r.Method+" "+r.URL.Path+" "+r.FormValue("body"))
	}))
	defer server.Close()
	run := func(token string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), path, "FLEET_NOTE_TOKEN="+token, "CI_API_V4_URL="+server.URL+"/api/v4", "CI_PROJECT_ID=5",
			"CI_MERGE_REQUEST_IID=3", "no_proxy=127.0.0.1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, &errs)
		}
	}
	run("")
	run("glpat")
	there = `[{"id":7,"type":null,"body":"LGTM"},{"id":42,"type":null,"body":"\u003c!-- fleetctl diff --\u003e\n"}]`
	run("glpat")
	const notes = "/api/v4/projects/5/merge_requests/3/notes"
	const body = " <!-- fleetctl diff -->\nreplaces 3 machines & more\n"
	if want := []string{"POST " + notes + body, "PUT " + notes + "/42" + body}; strings.Join(calls, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", calls, want)
	}
	// A stranger's note begins like the pipeline's note, or quotes a note as GitLab's API returns it.
	calls, me = nil, `{"id":9,"username":"project_5_bot","email":"a@example.com"}`
	strangers := `[{"id":41,"type":null,"body":"\u003c!-- fleetctl diff --\u003e nothing changes","author":{"id":99,"username":"mallory"}},` +
		`{"id":43,"type":null,"body":"<!-- fleetctl diff --> \\\",\"author\":{\"id\":9,","attachment":null,"author":{"id":99,"username":"mallory"}}`
	there = strangers + "]"
	run("glpat")
	for _, attachment := range []string{"", `"attachment":null,`} {
		there = strangers + `,{"id":44,"type":null,"body":"\u003c!-- fleetctl diff --\u003e\nreplaces \"x\"\n",` + attachment +
			`"author":{"id":9,"username":"project_5_bot"}}]`
		run("glpat")
	}
	if want := []string{
		"POST " + notes + body, "PUT " + notes + "/44" + body,
		"PUT " + notes + "/44" + body,
	}; strings.Join(calls, "|") != strings.Join(want, "|") {
		t.Errorf("beside a stranger's: %q, want %q", calls, want)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("files remain: %v (%v)", left, err)
	}
}

// noteScript returns the script of the pipeline that writes the note.
func noteScript(t *testing.T) string {
	t.Helper()
	files, err := scaffold.CIFiles(v1alpha1.ForgeGitLab, "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var pipeline struct {
			Fleet struct {
				Script []string `yaml:"script"`
			} `yaml:"fleet"`
		}
		if strings.HasSuffix(f.Path, ".yml") && yaml.Unmarshal(f.Content, &pipeline) == nil {
			for _, step := range pipeline.Fleet.Script {
				if strings.Contains(step, "FLEET_NOTE_TOKEN") {
					return step
				}
			}
		}
	}
	t.Fatal("no step writes a note")
	return ""
}
