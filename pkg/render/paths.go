package render

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
)

// kustomizationFiles returns the kustomization.yaml files of a folder: kustomize knows several names for the file.
func (r *repo) kustomizationFiles(dir string) []string {
	var found []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(dir, name); r.isFile(file) {
			found = append(found, file)
		}
	}
	return found
}

// kustomizationFile returns the first kustomization.yaml of a folder, or "".
func (r *repo) kustomizationFile(dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(dir, name); r.isFile(file) {
			return file
		}
	}
	return ""
}

func isKustomization(file string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(file))
}

// place is a place in a file.
type place struct {
	file         string
	line, column int
}

func placeOf(file string, n *yaml.Node) place { return place{file, n.Line, n.Column} }

// target says whether a path may lead to a file, a folder or both.
type target int

const (
	aFile target = 1 << iota
	aFolder
)

// path adds the file or folder that a field of a file in dir names, and replaces the field by the path for kustomize. It refuses a path
// that leads out of the repo, and an address that kustomize would fetch. It returns how many folders kustomize goes through for it.
func (c *closure) path(dir string, name *string, what target, at place, field string) int {
	refuse := func(rule, summary, hint string) int {
		c.problem(rule, at, field+": "+summary, hint)
		return 0
	}
	clean, ok := inside(dir, *name)
	switch {
	case *name == "" || strings.ContainsFunc(*name, unicode.IsControl):
		return refuse(RulePath, fmt.Sprintf("%.100q is no path", *name), "name a file of the repo")
	case isRemote(*name) || what&aFolder != 0 && isGitAddress(*name) && !c.repo.isFile(clean):
		if c.lenient && what&aFolder != 0 {
			c.leaveOut(name, at, field)
			return 0
		}
		return refuse(RuleRemote, fmt.Sprintf("%.100q would have to be fetched from elsewhere", *name), remoteHint)
	case !ok:
		return refuse(RulePath, fmt.Sprintf("%q leads out of the fleet repo", *name), "Flux sees only files of the repo: copy it into the repo")
	case what&aFile != 0 && c.repo.isFile(clean):
		if what&aFolder != 0 && isKustomization(clean) {
			return refuse(RuleKustomize, clean+" is no object", "name the folder that it is in")
		}
		if strings.HasPrefix(field, "resources[") || strings.HasPrefix(field, "bases[") {
			c.resources[clean] = true
			if c.without[clean] {
				*name = leftOut
				return 0
			}
		}
		*name = given(dir, clean)
		c.asIs[clean] = true
		c.file(clean, at)
		c.once(clean, at)
	case what&aFolder != 0 && c.repo.isDir(clean):
		*name = given(dir, clean)
		return c.folder(clean, at)
	case what == aFile && c.repo.isDir(clean):
		return refuse(RulePath, clean+" is a folder, and a file is wanted here", "name the files in it")
	case what == aFolder && c.repo.isFile(clean):
		return refuse(RulePath, clean+" is a file, and a folder with a kustomization.yaml is wanted here", "")
	default:
		return refuse(RulePath, fmt.Sprintf("there is no %s in the repo", clean), c.repo.missingHint(clean))
	}
	return 0
}

const remoteHint = "copy it into the repo: then it is reviewed, and available even if its origin is not"

// isRemote tells whether kustomize takes a name for a URL, or whether the author meant a URL. Every other name is a path, and has to exist.
func isRemote(name string) bool {
	lower := strings.ToLower(name)
	for _, start := range []string{"git::", "gh:", "git@", "github.com/", "github.com:", "http:", "https:"} {
		if strings.HasPrefix(lower, start) {
			return true
		}
	}
	return strings.Contains(lower, "://") || strings.Contains(lower, "?ref=") || strings.Contains(lower, ".git/") ||
		strings.HasSuffix(lower, ".git") || strings.Contains(lower, "_git/")
}

var gitAddress = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@[^/:]*[/:]`) })

// isGitAddress tells whether a name has the form user@host:path. Kustomize takes it for the address of a Git repository if it looks for a
// folder.
func isGitAddress(name string) bool { return gitAddress().MatchString(name) }

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}
