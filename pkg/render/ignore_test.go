package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/sourceignore"
)

// Looking at names alone makes no difference, unless the fleet has patterns of its own.
func TestIgnored(t *testing.T) {
	patterns := map[string]string{"none": "", "own": "/providers/*/c.yaml\n!docs/*.png\nsecret/\n"}
	for what, text := range patterns {
		r := &visible{all: fstest.MapFS{}}
		if text != "" {
			r.all = fstest.MapFS{sourceignore.IgnoreFile: {Data: []byte(text)}}
		}
		matcher := sourceignore.NewDefaultMatcher(sourceignore.ReadPatterns(strings.NewReader(text), nil), nil)
		ignored := 0
		names := []string{
			"a", "c.yaml", ".git", ".gitignore", "x.png", "y.tar.gz", ".github", ".travis.yml", "cloudbuild.yaml", ".sops.yaml", "docs", "secret",
			"providers", ".flux.yaml",
		}
		for _, top := range names {
			for _, middle := range names {
				for _, last := range names {
					for _, name := range []string{top, top + "/" + middle, top + "/" + middle + "/" + last} {
						for _, folder := range []bool{false, true} {
							want := matcher.Match(strings.Split(name, "/"), folder)
							if got := r.ignored(name, folder); got != want {
								t.Fatalf("%s: %s, folder %t: %t", what, name, folder, got)
							}
							if want {
								ignored++
							}
						}
					}
				}
			}
		}
		if ignored == 0 {
			t.Errorf("%s: nothing is ignored", what)
		}
	}
}
