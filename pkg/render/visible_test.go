package render_test

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// What source-controller leaves out is not rendered, wherever it is named: Flux deletes it, or fails.
func TestLeftOut(t *testing.T) {
	const folder = "providers/docker/v1/clusters/dev/a"
	object := strings.Replace(goodObject, "good", "a", 1)
	for _, c := range []struct {
		name    string
		files   map[string]string
		link    map[string]string // names of symbolic links to what they lead to
		objects string
		rule    string // of the one finding; "" where there is none
	}{
		{name: "nothing", files: map[string]string{folder + "/x.yaml": object}, objects: "Namespace a"},
		{name: "top", files: map[string]string{folder + "/x.yaml": object, ".sourceignore": folder + "/x.yaml\n"}},
		{name: "folder", files: map[string]string{folder + "/x.yaml": object, folder + "/.sourceignore": "x.yaml\n"}},
		{name: "folder above", files: map[string]string{folder + "/x.yaml": object, "providers/.sourceignore": "**/x.yaml\n"}},
		{
			name: "back again", files: map[string]string{folder + "/x.yaml": object, "providers/.sourceignore": "*\n!x.yaml\n"},
			objects: "Namespace a",
		},
		{name: "below a folder that is left out", files: map[string]string{
			folder + "/b/x.yaml": object,
			".sourceignore":      "b/\n!" + folder + "/b/x.yaml\n",
		}, objects: "Namespace a"},
		{
			name: "named", rule: render.RulePath,
			files: map[string]string{
				folder + "/x.yaml": object, folder + "/kustomization.yaml": "resources: [x.yaml]\n",
				folder + "/.sourceignore": "x.yaml\n",
			},
		},
		{
			name: "link", files: map[string]string{"x.txt": object}, link: map[string]string{folder + "/x.yaml": "../../../../../../x.txt"},
			rule: render.RulePath,
		},
		{
			name: "link that is named", rule: render.RulePath, link: map[string]string{folder + "/x.yaml": "../../../../../../x.txt"},
			files: map[string]string{"x.txt": object, folder + "/kustomization.yaml": "resources: [x.yaml]\n"},
		},
		{
			name: "folder that is a link", files: map[string]string{"b/x.yaml": object, folder + "/README.md": ""},
			link: map[string]string{folder + "/b": "../../../../../../b"},
		},
		{
			name: "list that is a link", rule: render.RulePath, objects: "Namespace a",
			link:  map[string]string{folder + "/.sourceignore": "../../../../../../x.txt"},
			files: map[string]string{folder + "/x.yaml": object, "x.txt": "x.yaml\n"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.link) > 0 && runtime.GOOS == "windows" {
				return // where links need a privilege
			}
			files := map[string]string{"fleet.yaml": fleetYAML}
			maps.Copy(files, c.files)
			dir := repoWith(t, files)
			for name, target := range c.link {
				name = filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(filepath.FromSlash(target), name); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(name); err != nil {
					t.Fatal(err)
				}
			}
			res, err := renderer(t, dir, "").All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names := make([]string, 0, len(res.Objects))
			for _, o := range res.Objects {
				names = append(names, o.ID())
			}
			if got := strings.Join(names, " "); !strings.Contains(got, c.objects) || c.objects == "" && got != "" {
				t.Errorf("rendered %q", got)
			}
			switch {
			case c.rule == "" && len(res.Findings) > 0, c.rule != "" && (len(res.Findings) != 1 || res.Findings[0].Rule != c.rule):
				t.Errorf("got %v", res.Findings)
			}
		})
	}
}

// What a GitRepository leaves out by itself is rendered, and said.
func TestLeftOutBySource(t *testing.T) {
	source := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: " +
		"{interval: 1m, url: 'https://git.example.com/fleet.git'"
	for field, text := range map[string]string{
		"": "}\n", "ignore": ", ignore: '/*'}\n", "sparseCheckout": ", sparseCheckout: [docs]}\n",
		"include": ", include: [{repository: {name: other}}]}\n",
	} {
		res, err := renderer(t, repoWith(t, map[string]string{"fleet.yaml": fleetYAML, "providers/docker/v1/mgmt/source.yaml": source + text}),
			"").All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case field == "" && len(res.Findings) > 0, field != "" &&
			(len(res.Findings) != 1 || !strings.Contains(res.Findings[0].Summary, "spec."+field+" ")):
			t.Errorf("%q: got %v", field, res.Findings)
		}
	}
}
