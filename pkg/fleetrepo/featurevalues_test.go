package fleetrepo

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

const theirValues = `# Ours.
apiVersion: v1
kind: ConfigMap
metadata:
  name: podinfo-values-environment
  namespace: flux-system
  labels: {reconcile.fluxcd.io/watch: Enabled, team: web}   # who to ask
data:
  "other.yaml": "a: b"
  values.yaml: |
    # sizes
    replicaCount: 3 # agreed with ops

    ui:
        message: 'hi'
    hosts:
      - a # first
  # after
  last: x
`

// fleetWithValues returns a repo with the chart feature podinfo, and with this file of values for the environment dev.
func fleetWithValues(t *testing.T, content string) (*Repo, string) {
	t.Helper()
	r := cloudsRepo(t, cloudsFleet)
	at := r.Fleet.Spec.ManagementClusters[0].Layout()
	write(t, r.Dir, at.FoldersFile("dev"), []byte("a: b\n"))
	write(t, r.Dir, "features/podinfo/namespaced/release.yaml", []byte("a: b\n"))
	file := at.Cluster("dev", "common") + "/namespaced/podinfo-values.yaml"
	write(t, r.Dir, file, []byte(content))
	return r, file
}

// Values change in their place: comments, order, quotes, other keys and the ends of lines stay.
func TestFeatureValuesKeepTheFile(t *testing.T) {
	for name, tc := range map[string]struct{ set, old, new string }{
		"a number": {"replicaCount=4", "replicaCount: 3 #", "replicaCount: 4 #"},
		"a field":  {"ui.color=red", "message: 'hi'\n", "message: 'hi'\n        color: red\n"},
		"an item":  {"hosts[1]=b", "- a # first\n", "- a # first\n      - b\n"},
		"fields": {
			"resources={limits: {cpu: 1}}", "replicaCount: 3 # agreed with ops\n",
			"replicaCount: 3 # agreed with ops\n    resources:\n      limits:\n        cpu: 1\n",
		},
		"another list": {"hosts=[b]", "    hosts:\n      - a # first\n", ""},
		"the same":     {"replicaCount=3", "", ""},
		"same fields":  {"ui={message: hi}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, eol := range []string{"\n", "\r\n"} {
				in := func(text string) string { return strings.ReplaceAll(text, "\n", eol) }
				r, file := fleetWithValues(t, in(theirValues))
				e, err := r.SetFeatureValues("podinfo", FeatureOptions{}, mustAssign(t, tc.set))
				_, r = done(t, r, e, err)
				got, err := r.read(file)
				if err != nil {
					t.Fatal(err)
				}
				want := in(strings.Replace(theirValues, tc.old, tc.new, 1))
				if name == "another list" { // it comes after the fields of one line
					want = strings.Replace(want, in("with ops\n"), in("with ops\n    hosts:\n      - b\n"), 1)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

// Values that cannot be changed in their place are written anew if no comment gets lost.
func TestFeatureValuesInAnUnusualForm(t *testing.T) {
	const anchored = "    a: &one {b: 1}\n    c: *one\n"
	for name, tc := range map[string]struct{ values, want string }{
		"none":            {"    {}\n", "    c:\n      b: 2\n"},
		"an alias":        {anchored, "    a:\n      b: 1\n    c:\n      b: 2\n"},
		"a comment, too":  {anchored + "    # ours\n", ""},
		"only a comment":  {"    # ours\n", ""},
		"none but a note": {"    {} # ours\n", "    {c: {b: 2}} # ours\n"},
	} {
		t.Run(name, func(t *testing.T) {
			const top = "kind: ConfigMap\ndata:\n  values.yaml: |\n"
			r, file := fleetWithValues(t, top+tc.values)
			e, err := r.SetFeatureValues("podinfo", FeatureOptions{}, mustAssign(t, "c.b=2"))
			if tc.want == "" {
				if !errors.Is(err, yamledit.ErrCannotEdit) {
					t.Errorf("got %v", err)
				}
				return
			}
			_, r = done(t, r, e, err)
			if got, err := r.read(file); err != nil || string(got) != top+tc.want {
				t.Errorf("got %v\n%s", err, got)
			}
		})
	}
}
