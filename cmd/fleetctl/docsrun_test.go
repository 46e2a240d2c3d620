package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere finds the lines of a console block that a machine with neither a cluster, a network, a remote nor other programs cannot run. All
// others are run as they stand.
var elsewhere = regexp.MustCompile(
	// What makes, asks or removes a management cluster.
	`^fleetctl (?:init|bootstrap|teardown|status|kubeconfig|doctor|host|promote|pivot|backup|restore|connect|upgrade|why|credentials|support-bundle|adopt|cluster kubeconfig|cluster detach)\b|--wait\b|--now\b|` +
		// What fetches, or is given what was fetched.
		`^fleetctl (?:bundle|lock)\b|--bundle\b|` +
		// What init has made a key for, or what fleet.yaml on that page declares.
		`fleetctl secret\b|--management (?:root|eu)\b|` +
		// What a forge or a remote takes.
		`--pr\b|--push\b|^git push\b|\borigin/|` +
		// Other programs, and folders of the reader's own.
		`^(?:go|make|kubectl|export|mkdir|cd|git switch)\b|\b(?:pass|helm) |…`)

// TestDocsRun types what README and the task pages show, page by page, into a fleet as README's first commands make it: with one environment, one
// cluster and no remote. A page that needs more has the commands that bring it.
func TestDocsRun(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "tasks", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%v: %q", err, pages)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		name, _ := filepath.Rel(root, page)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			fleet := newDocsFleet(t)
			for _, line := range consoleLines(string(content)) {
				if elsewhere.MatchString(line) && !strings.Contains(line, "--scaffold") {
					continue
				}
				if out, err := fleet.run(line); err != nil {
					t.Fatalf("%s: %s: %v\n%s", name, line, err, out)
				}
			}
			if out, err := fleet.run("fleetctl validate --offline"); err != nil {
				t.Errorf("%s leaves a fleet in which something is wrong: %v\n%s", name, err, out)
			}
		})
	}
}

// docsFleet is a fleet that somebody types commands into.
type docsFleet struct {
	t    *testing.T
	dir  string
	home string
}

func newDocsFleet(t *testing.T) *docsFleet {
	f := &docsFleet{t: t, dir: filepath.Join(t.TempDir(), "fleet"), home: t.TempDir()}
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := identify(f.home); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"fleetctl init --scaffold --host embedded --provider docker",
		"fleetctl cluster add demo --flavour in-memory --environment dev --set kubernetesVersion=v1.36.3 --commit",
	} {
		if out, err := f.run(line); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	return f
}

// run runs a line as a shell does. Nothing answers at the proxy that it is given: what would ask the network fails at once.
func (f *docsFleet) run(line string) (string, error) {
	c := exec.CommandContext(f.t.Context(), "bash", "-o", "pipefail", "-c", line)
	c.Dir = f.dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "XDG_CONFIG_HOME=" + filepath.Join(f.home, ".config"), "XDG_CACHE_HOME=" + filepath.Join(f.home, ".cache"),
		"XDG_STATE_HOME=" + filepath.Join(f.home, ".state"), "GIT_CONFIG_GLOBAL=" + filepath.Join(f.home, "gitconfig"), "GIT_CONFIG_NOSYSTEM=1",
		"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_COLOR=1",
	}
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("bash: %w", err)
	}
	return string(out), err
}

// consoleLines are the lines that a reader of a page types, in order: those of its blocks of console and sh, without prompts and comments, and with
// the lines joined that a backslash splits.
func consoleLines(page string) []string {
	var lines []string
	prompts, inside := false, false
	for line := range strings.SplitSeq(strings.ReplaceAll(page, "\\\n", " "), "\n") {
		switch fence := strings.TrimSpace(line); {
		case strings.HasPrefix(fence, "```"):
			prompts = fence == "```console"
			inside = prompts || fence == "```sh"
			continue
		case !inside:
			continue
		}
		typed, isTyped := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		typed, _, _ = strings.Cut(typed, "  #")
		if typed = strings.TrimSpace(typed); typed != "" && (isTyped || !prompts) && !strings.HasPrefix(typed, "#") {
			lines = append(lines, typed)
		}
	}
	return lines
}
