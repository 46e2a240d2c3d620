package adopt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// What a submodule holds is another repository's: its clusters are not counted, which the report says as validate does, and where no others
// are there the error says it. A folder that Flux does not apply is nobody's business.
func TestSubmodules(t *testing.T) {
	const sync = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\n" +
		"spec: {interval: 10m, path: ./clusters/prod, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n"
	const cluster = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: of-another, namespace: default}\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"checked out": {
			files: map[string]string{"clusters/prod/sub/.git": "gitdir: ../../../.git/modules/sub\n", "clusters/prod/sub/a.yaml": cluster},
			want:  "clusters/prod/sub",
		},
		"a clone": {
			files: map[string]string{"clusters/prod/sub/.git/HEAD": "ref: refs/heads/main\n", "clusters/prod/sub/a.yaml": cluster},
			want:  "clusters/prod/sub",
		},
		"not checked out": {
			files: map[string]string{
				"clusters/prod/sub/": "",
				".gitmodules":        "[submodule \"x\"]\n\tpath = clusters/prod/sub\n\turl = --upload-pack=touch /tmp/x\n\tpath = ../..\n\tpath = /\n",
			},
			want: "clusters/prod/sub",
		},
		"not applied": {files: map[string]string{"docs/theme/.git": "gitdir: x\n", "docs/theme/a.yaml": cluster}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.files["clusters/prod/flux-system/gotk-sync.yaml"] = sync
			r, told := lookAt(t, tc.files, render.RuleSubmodule)
			if strings.Join(told, " ") != tc.want || len(r.Clusters) > 0 {
				t.Errorf("told of %q, want %q; clusters: %v", told, tc.want, r.Clusters)
			}
			_, err := r.fleet(Options{})
			if said := err != nil && strings.Contains(err.Error(), "another repository's"); said != (tc.want != "") || diag.Hint(err) == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

// lookAt looks at a repo with these files, of which a name that ends in / is a folder. It returns the report, and the files of which the
// report tells by the rule.
func lookAt(t *testing.T, files map[string]string, rule string) (r *Report, told []string) {
	t.Helper()
	dir := t.TempDir()
	for file, content := range files {
		at := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "/") {
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := look(t.Context(), question{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Problems {
		if f.Rule == rule {
			told = append(told, f.File)
		}
	}
	return r, told
}
