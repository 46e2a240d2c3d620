package releases

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrOtherVersions means that an offline repository has a provider, but not in the wanted version.
var ErrOtherVersions = errors.New("does not have this version")

// locate returns the URL of p's components: in the repository folder, or else the URL released, for p's version.
func (s *Source) locate(p Provider, released string) (string, error) {
	if s.repository == "" {
		if p.Version != "" {
			released = strings.Replace(released, "/latest/", "/"+p.Version+"/", 1)
		}
		return released, nil
	}
	versions, err := s.versions(p.Label())
	if err != nil {
		return "", err
	}
	wanted := cmp.Or(p.Version, versions[0])
	if !slices.Contains(versions, wanted) {
		return "", diag.Errorf("choose one of these versions, or make a bundle with the version",
			"the offline repository %w: it has %s only in %s", ErrOtherVersions, p.Label(), strings.Join(versions, ", "))
	}
	folder := filepath.Join(s.repository, p.Label(), wanted)
	file, err := componentsFile(folder, path.Base(released))
	if err != nil {
		return "", err
	}
	return fileURL(filepath.Join(folder, file)), nil
}

// versions returns the versions of a provider in the repository folder, newest first. It returns an error if there are none.
func (s *Source) versions(label string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.repository, label))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var versions []string
	for _, e := range entries {
		if _, err := version.ParseSemantic(e.Name()); err == nil && e.IsDir() {
			versions = append(versions, e.Name())
		}
	}
	if len(versions) == 0 {
		return nil, diag.Errorf("make a bundle with the provider: `fleetctl bundle create`", "the offline repository has no %s", label)
	}
	sortNewestFirst(versions)
	return versions, nil
}

// sortNewestFirst sorts semantic versions, newest first, and all releases before all pre-releases.
func sortNewestFirst(versions []string) {
	slices.SortFunc(versions, func(a, b string) int { return cmp.Or(comparePreRelease(a, b), compareVersions(b, a)) })
}

// comparePreRelease orders releases before pre-releases, as clusterctl does to find the newest version.
func comparePreRelease(a, b string) int {
	pre := func(v string) int {
		if version.MustParseSemantic(v).PreRelease() != "" {
			return 1
		}
		return 0
	}
	return cmp.Compare(pre(a), pre(b))
}

// compareVersions orders semantic versions, and other texts as texts.
func compareVersions(a, b string) int {
	x, errX := version.ParseSemantic(a)
	y, errY := version.ParseSemantic(b)
	switch {
	case errX != nil || errY != nil:
		return cmp.Compare(a, b)
	case x.LessThan(y):
		return -1
	case y.LessThan(x):
		return 1
	}
	return 0
}

// componentsFile returns the file name of the components in folder: the name that releases use, or else the only other components file.
func componentsFile(folder, released string) (string, error) {
	if _, err := os.Stat(filepath.Join(folder, released)); err == nil {
		return released, nil
	}
	matches, err := filepath.Glob(filepath.Join(folder, "*components*.yaml"))
	if err != nil || len(matches) != 1 {
		return "", fmt.Errorf("%s has no %s", folder, released)
	}
	return filepath.Base(matches[0]), nil
}

// fileURL returns the file:// URL of an absolute path. The path may start with a drive letter.
func fileURL(name string) string {
	slashed := filepath.ToSlash(name)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String()
}
