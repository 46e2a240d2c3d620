package validate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkGiven returns an error if the bundle or the CRDs of the options do not exist, even if the fleet would not need them.
func checkGiven(o Options) error {
	if o.Bundle != "" {
		if err := bundle.CheckThere(o.Bundle); err != nil {
			return err
		}
	}
	for _, name := range o.CRDs {
		if _, err := os.Stat(name); err != nil {
			return diag.Wrap("read CRDs", err, "give --crds an existing folder or file")
		}
	}
	return nil
}

// gitPrefix is the path of a folder in its Git repository. Paths in a pull request begin at the top of that repository.
func gitPrefix(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			relative, err := filepath.Rel(at, dir)
			if err != nil || relative == "." {
				return ""
			}
			return filepath.ToSlash(relative)
		}
		if filepath.Dir(at) == at {
			return ""
		}
	}
}

// relativePaths returns the paths that the user gave, relative to the top of the repo.
func relativePaths(dir string, given []string) ([]string, error) {
	var out []string
	for _, name := range given {
		full, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", name, err)
		}
		if _, err := os.Stat(full); err != nil {
			return nil, diag.Usage("give files and folders of the fleet repo", "there is no %s", name)
		}
		relative, err := filepath.Rel(dir, full)
		if err != nil || relative == ".." || strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
			return nil, diag.Usage("give files and folders of the fleet repo", "%s is not in the fleet repo %s", name, dir)
		}
		out = append(out, filepath.ToSlash(relative))
	}
	return out, nil
}

// isWithin returns the findings about the paths in only.
func isWithin(findings diag.Findings, only []string) diag.Findings {
	out := make(diag.Findings, 0, len(findings)) // an empty list, not null
	for _, f := range findings {
		if len(only) == 0 || slices.ContainsFunc(only, func(p string) bool {
			return p == "." || f.File == p || strings.HasPrefix(f.File, p+"/")
		}) {
			out = append(out, f)
		}
	}
	return out
}
