package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/secret"
)

// TestDocsRun types what README, the tutorial and the task pages show, page by page, into a fleet as README's first commands make it: with
// one environment, one cluster and no remote. A line runs and ends with exit code 0, or with the one that its comment begins with ("exit 3:
// …"), and prints what the page shows below it; or it is one of those that are told in docsNotRun, with the reason. A page that needs more
// than this fleet has the commands that bring it.
func TestDocsRun(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "tasks", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%v: %q", err, pages)
	}
	first := newDocsFleet(t)
	used := make([]bool, len(docsNotRun))
	for _, page := range append(pages, filepath.Join(root, "docs", "tutorial.md"), filepath.Join(root, "README.md")) {
		name, _ := filepath.Rel(root, page)
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var lines []typedLine
		for _, line := range typedLines(string(content)) {
			if i := notRun(name, line.command); i >= 0 {
				used[i] = true
				continue
			}
			lines = append(lines, line)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first.copy(t).readAlong(name, lines)
		})
	}
	for i, used := range used {
		if !used {
			t.Errorf("no page has a line %q (%s) any more: take it out of docsNotRun", docsNotRun[i].line, docsNotRun[i].page)
		}
	}
}

// readAlong types the lines of a page.
func (f *docsFleet) readAlong(page string, lines []typedLine) {
	f.t.Helper()
	if begin := docsBegin[page]; begin != nil {
		begin(f)
	}
	for _, line := range lines {
		out, code := f.run(line.command)
		if code != line.exit {
			f.t.Fatalf("%s: %s: exit code %d, and not %d. Mend the page or the product, or tell in docsNotRun what the line needs.\n%s",
				page, line.command, code, line.exit, out)
		}
		if missing := notShown(line.output, out); missing != "" {
			f.t.Errorf("%s: %s: the page shows a line that is not printed there:\n%s\nIt prints:\n%s", page, line.command, missing, out)
		}
	}
	if !exists(filepath.Join(f.dir, "fleet.yaml")) {
		return // adopt.md begins without a fleet
	}
	if out, code := f.run("fleetctl validate --offline"); code != 0 {
		f.t.Errorf("%s leaves a fleet in which something is wrong: exit code %d\n%s", page, code, out)
	}
}

// docsFleet is a fleet that somebody types commands into.
type docsFleet struct {
	t    *testing.T
	top  string // of it and of the person's home
	dir  string
	home string
}

// newDocsFleet makes the fleet that each page begins with.
func newDocsFleet(t *testing.T) *docsFleet {
	f := docsFleetIn(t, t.TempDir())
	for _, dir := range []string{f.dir, f.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := identify(f.home); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"fleetctl init --scaffold --host embedded --provider docker",
		"fleetctl cluster add demo --flavour in-memory --environment dev --set kubernetesVersion=v1.36.3 --commit",
	} {
		if out, code := f.run(line); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", line, code, out)
		}
	}
	return f
}

func docsFleetIn(t *testing.T, top string) *docsFleet {
	return &docsFleet{t: t, top: top, dir: filepath.Join(top, "fleet"), home: filepath.Join(top, "home")}
}

// copy is another fleet that is the same.
func (f *docsFleet) copy(t *testing.T) *docsFleet {
	other := docsFleetIn(t, t.TempDir())
	if err := os.CopyFS(other.top, os.DirFS(f.top)); err != nil {
		t.Fatal(err)
	}
	return other
}

// run runs a line as a shell does, and returns what it prints and its exit code. Nothing answers at the proxy that it is given: what would
// ask the network fails at once.
func (f *docsFleet) run(line string) (string, int) {
	f.t.Helper()
	c := exec.CommandContext(f.t.Context(), "bash", "-o", "pipefail", "-c", line)
	c.Dir = f.dir
	c.Env = []string{
		"PATH=" + filepath.Join(f.home, "bin") + ":" + os.Getenv("PATH"), "HOME=" + f.home, "XDG_CONFIG_HOME=" + filepath.Join(f.home, ".config"),
		"XDG_CACHE_HOME=" + filepath.Join(f.home, ".cache"),
		"XDG_STATE_HOME=" + filepath.Join(f.home, ".state"), "GIT_CONFIG_GLOBAL=" + filepath.Join(f.home, "gitconfig"), "GIT_CONFIG_NOSYSTEM=1",
		"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_COLOR=1", "EDITOR=" + filepath.Join(f.home, "editor"),
	}
	if key := filepath.Join(f.home, "fleet.agekey"); exists(key) {
		c.Env = append(c.Env, "SOPS_AGE_KEY_FILE="+key)
	}
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		f.t.Fatal(fmt.Errorf("bash: %w", err))
	}
	return string(out), c.ProcessState.ExitCode()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// write makes a file that is there before the page begins.
func (f *docsFleet) write(path, content string, mode fs.FileMode) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		f.t.Fatal(err)
	}
}

// docsBegin is what is there beside the fleet where a page begins.
var docsBegin = map[string]func(*docsFleet){
	// `fleetctl init` has made the fleet's key, with the management cluster.
	"docs/tasks/secrets.md": func(f *docsFleet) {
		key, err := secret.NewKey()
		if err != nil {
			f.t.Fatal(err)
		}
		keys := secret.Keys{key}
		f.write(filepath.Join(f.dir, ".sops.yaml"), string(secret.NewRules(keys.Recipients())), 0o600)
		f.write(filepath.Join(f.home, "fleet.agekey"), string(keys.File()), 0o600)
		f.write(filepath.Join(filepath.Dir(f.dir), "dev.agekey"), string(keys.File()), 0o600)
		f.write(filepath.Join(f.home, "editor"), "#!/bin/sh\nsed -i 's/password: .*/password: Y2hhbmdlZA==/' \"$1\"\n", 0o700)
		f.write(filepath.Join(f.dir, "token.sops.yaml"),
			"apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\n  namespace: shop\nstringData:\n  token: abc\n", 0o600)
		if out, code := f.run("git add .sops.yaml && git commit -qm 'Encrypt secrets'"); code != 0 {
			f.t.Fatal(out)
		}
	},
	// The provider's template was fetched, and somebody has written the clouds.yaml that the page shows, with an application credential in it.
	"docs/tasks/openstack.md": func(f *docsFleet) {
		template, err := os.ReadFile(filepath.Join("testdata", "openstack-cluster-template.yaml"))
		if err != nil {
			f.t.Fatal(err)
		}
		f.write(filepath.Join(f.dir, "cluster-template.yaml"), string(template), 0o600)
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tasks", "openstack.md"))
		if err != nil {
			f.t.Fatal(err)
		}
		_, block, _ := strings.Cut(string(page), "```yaml\n")
		clouds, _, found := strings.Cut(block, "```")
		if !found {
			f.t.Fatal("the page shows no clouds.yaml")
		}
		f.write(filepath.Join(filepath.Dir(f.dir), "clouds.yaml"), clouds, 0o600)
	},
	// A team keeps the addresses of its webhooks in the password manager pass, or in a file.
	"docs/tasks/notifications.md": func(f *docsFleet) {
		f.write(filepath.Join(f.home, "bin", "pass"), "#!/bin/sh\necho https://hooks.example.com/ops\n", 0o700)
		f.write(filepath.Join(f.dir, "teams.txt"), "https://hooks.example.com/teams\n", 0o600)
	},
	"docs/tasks/workload-flux.md": func(f *docsFleet) {
		f.write(filepath.Join(f.dir, "cilium.yaml"),
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cilium-config\n  namespace: kube-system\n", 0o600)
	},
	// The page shows the file that its commands take.
	"docs/tasks/velero.md": func(f *docsFleet) {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tasks", "velero.md"))
		if err != nil {
			f.t.Fatal(err)
		}
		_, block, _ := strings.Cut(string(page), "```yaml\n")
		values, _, found := strings.Cut(block, "```")
		if !found {
			f.t.Fatal("the page shows no values")
		}
		f.write(filepath.Join(f.dir, "velero-values.yaml"), values, 0o600)
	},
	// A repo of Flux that fleetctl has not made.
	"docs/tasks/adopt.md": func(f *docsFleet) {
		if out, code := f.run("git rm -q fleet.yaml fleet.id && git commit -qm 'Manage without fleetctl'"); code != 0 {
			f.t.Fatal(out)
		}
	},
}

// typedLine is a line that a reader of a page types.
type typedLine struct {
	command string
	output  []string // what the page shows that it prints
	exit    int
}

// exitCode finds the exit code that the comment of a line tells.
var exitCode = regexp.MustCompile(`^exit (\d+)\b`)

// typedLines are the lines that a reader of a page types, in order: those of its blocks of console and sh, without prompts and comments,
// and with the lines joined that a backslash splits. In a block of console what stands without a prompt is the output of the line before
// it.
func typedLines(page string) []typedLine {
	var lines []typedLine
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
		if prompts && !isTyped {
			if len(lines) > 0 {
				lines[len(lines)-1].output = append(lines[len(lines)-1].output, line)
			}
			continue
		}
		typed, comment, _ := strings.Cut(typed, "  #")
		if typed = strings.TrimSpace(typed); typed == "" || strings.HasPrefix(typed, "#") {
			continue
		}
		next := typedLine{command: typed}
		if found := exitCode.FindStringSubmatch(strings.TrimSpace(comment)); found != nil {
			_, _ = fmt.Sscan(found[1], &next.exit)
		}
		lines = append(lines, next)
	}
	return lines
}

// changing is what no two runs print alike.
var changing = regexp.MustCompile(`\b[0-9a-f]{8}\b|\b\d+\.\d+s\b|\S*fleetctl \(?(?:devel|v\d[\w.]*)\)?`)

// notShown is the first line of a page's output that a command does not print, in the order of the page. An ellipsis stands for any
// text; commits, durations, the version of fleetctl and the width of columns do not count.
func notShown(shown []string, printed string) string {
	plain := func(line string) string {
		return strings.Join(strings.Fields(changing.ReplaceAllString(line, "_")), " ")
	}
	var rest []string
	for line := range strings.SplitSeq(printed, "\n") {
		rest = append(rest, plain(line))
	}
	for _, line := range shown {
		if strings.TrimSpace(line) == "" {
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(plain(line)), "…", ".*") + "$")
		at := -1
		for i, candidate := range rest {
			if pattern.MatchString(candidate) {
				at = i
				break
			}
		}
		if at < 0 {
			return line
		}
		rest = rest[at+1:]
	}
	return ""
}
