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
	"pkg/cmd/cluster_add.go":     "a file that the user names, or a pipe",
	"pkg/change/network.go":      "a file that the user names, or a pipe",
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
	used := map[string]bool{}
	sources := os.DirFS("../..")
	if err := fs.WalkDir(sources, "pkg", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(sources, name)
		for i, line := range strings.Split(string(content), "\n") {
			if !opens.MatchString(line) {
				continue
			}
			known := false
			for room := range own {
				if strings.HasPrefix(name, room) {
					known, used[room] = true, true
				}
			}
			if !known {
				t.Errorf("%s:%d: whose file is it? within opens what a stranger may have put there: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for room, why := range own {
		if !used[room] {
			t.Errorf("nothing opens a file in %s any more (%s)", room, why)
		}
	}
}
