package within_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// own are the files and rooms whose os.Open and os.ReadFile name a file that nobody else has put there, or one that the user has named and
// that may be a pipe on purpose.
var own = map[string]string{
	"pkg/within/":                "this package",
	"pkg/state/":                 "the folder of fleetctl's own state",
	"pkg/host/":                  "folders of the hosts, and the kernel's files",
	"pkg/gitserve/":              "the folder of the local Git server",
	"pkg/management/":            "kubeconfigs among fleetctl's own state",
	"pkg/connect/connect.go":     "a kubeconfig among fleetctl's own state",
	"pkg/lifecycle/bootstrap.go": "a kubeconfig among fleetctl's own state",
	"pkg/pivot/pivottarget.go":   "a kubeconfig among fleetctl's own state",
	"pkg/render/internal/store/": "a temporary pack of fleetctl's own",
	"pkg/components/crds.go":     "fleetctl's own cache",
	"pkg/checkup/neighbours.go":  "/etc/passwd and /etc/nsswitch.conf",
	"pkg/kube/":                  "the lock beside the user's kubeconfig, and modules for tests",
	"pkg/flux/release.go":        "temporary copies of manifests that were read before",
	"pkg/bundling/programs.go":   "temporary copies of manifests that were read before",
	"pkg/gitrepo/auth.go":        "the user's own ~/.ssh, or a key that the user names",
	"pkg/gitrepo/hostkeys.go":    "the user's own ~/.ssh/known_hosts",
	"pkg/fleetsecrets/edit.go":   "the edit that the user names, or standard input",
	"pkg/cmd/editor.go":          "a temporary file that the user's editor was given",
	"pkg/atomicfile/":            "locks of fleetctl's own temporary files",
	"pkg/gitrepo/gittest/":       "for tests",
	"pkg/standing/standingtest/": "for tests",
	"pkg/syswatch/":              "for tests",
	"pkg/gitrepo/worktree.go":    "a folder, to sync it",
}

// A fleet repo, a bundle and the folders beside them may hold pipes and devices in the place of files: who opens one with os.Open waits for
// ever, or reads without an end. So such files are opened by this package.
func TestFilesOfStrangersAreOpenedHere(t *testing.T) {
	opens := regexp.MustCompile(`\b(os|[rR]oot)\.(ReadFile|Open)\(`)
	eachLine(t, own, opens, "whose file is it? within opens what a stranger may have put there")
}

// whole are the files with an io.ReadAll, and what bounds it.
var whole = map[string]string{
	"pkg/within/":                   "this package",
	"pkg/bundle/":                   "a limit, and one byte more for who is beyond it",
	"pkg/secret/":                   "a limit and one byte more, or what is in memory",
	"pkg/fleetrepo/managementid.go": "a limit, and one byte more",
	"pkg/gitserve/handler.go":       "a limit, and one byte more",
	"pkg/host/embedded/images/":     "a limit, and one byte more",
	"pkg/host/internal/apiserver/":  "the start of an answer that an error quotes",
	"pkg/sameorigin/answer.go":      "the start of an answer that an error quotes",
	"pkg/gitrepo/bounded.go":        "the start of an answer that an error quotes",
	"pkg/gitrepo/shelf.go":          "the size of the object, which is in memory",
	"pkg/gitrepo/sign.go":           "a commit that fleetctl has written, in memory",
	"pkg/vault/vault.go":            "the transport",
	"pkg/vault/vaulttest/":          "for tests",
	"pkg/capi/releases/template.go": "the transport",
	"pkg/support/logs.go":           "the section of a log",
}

// A stranger's file may be endless, or have a few gigabytes. So within reads it, and says so, instead of a part that would be taken for the
// whole.
func TestReadersAreBounded(t *testing.T) {
	eachLine(t, whole, regexp.MustCompile(`\bio\.ReadAll\(`), "what bounds it? within.All refuses what is too large")
}

// eachLine looks for lines in the sources of pkg that stand in none of the known files and rooms, and for rooms without such a line.
func eachLine(t *testing.T, known map[string]string, wanted *regexp.Regexp, asks string) {
	t.Helper()
	used := map[string]bool{}
	sources := os.DirFS("../..")
	if err := fs.WalkDir(sources, "pkg", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(sources, name)
		for i, line := range strings.Split(string(content), "\n") {
			if !wanted.MatchString(line) {
				continue
			}
			found := false
			for room := range known {
				if strings.HasPrefix(name, room) {
					found, used[room] = true, true
				}
			}
			if !found {
				t.Errorf("%s:%d: %s: %s", name, i+1, asks, strings.TrimSpace(line))
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for room, why := range known {
		if !used[room] {
			t.Errorf("no line of %s does so any more (%s)", room, why)
		}
	}
}
