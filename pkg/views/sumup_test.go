package views

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

func numbered(sign string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sline %d\n", sign, i)
	}
	return b.String()
}

// Generated parts are summed up, and no line of any other part is lost.
func TestSumUp(t *testing.T) {
	write := func(name, content string) string {
		c := manifest.Compare(name, nil, []byte(content))
		return c.Diff()
	}
	const flux = "providers/docker/v1/mgmt/flux-system/gotk-components.yaml"
	fleet := manifest.Compare("fleet.yaml", []byte("a: 1\n-- x\n"), []byte("a: 2\n++ y\n"))
	changed := manifest.Compare(flux, []byte(numbered("", 10)), []byte("new\n"+numbered("", 8)))
	team := write("charts/own/templates/x.yaml", "a: 1\n")
	gone := func(name, content string) string {
		c := manifest.Compare(name, []byte(content), nil)
		return c.Diff()
	}
	network, long := "addons/cni/cilium/cilium.yaml", numbered("", 300)
	for name, test := range map[string]struct{ diff, want string }{
		"nothing": {"", ""},
		"new": {
			fleet.Diff() + write(flux, numbered("", 6229)) + team,
			fleet.Diff() + "--- /dev/null\n+++ b/" + flux + "\n… 6,229 lines of Flux's own manifests\n" + team,
		},
		"changed": {changed.Diff() + fleet.Diff(), "--- a/" + flux + "\n+++ b/" + flux + "\n… 1 line more and 2 less of Flux's own manifests\n" +
			fleet.Diff()},
		"gone": {gone(flux, numbered("", 1200)), "--- a/" + flux + "\n+++ /dev/null\n… 1,200 lines less of Flux's own manifests\n"},
		"a new chart": {
			write("charts/aws-eks/Chart.yaml", "name: aws-eks\n") + write("charts/aws-eks/templates/a.yaml", "--- \n+++ \n") + fleet.Diff() + team,
			"--- /dev/null\n+++ b/charts/aws-eks\n… 2 files, 3 lines of the chart of flavour aws-eks, as fleetctl brings it\n" + fleet.Diff() + team,
		},
		"a removed chart": {
			gone("charts/aws-eks/Chart.yaml", "name: aws-eks\n") + gone("charts/aws-eks/templates/a.yaml", "--- \n+++ \n") + fleet.Diff() +
				gone("charts/own/Chart.yaml", "name: own\n"),
			"--- a/charts/aws-eks\n+++ /dev/null\n… 2 files, 3 lines less: the chart of flavour aws-eks\n" + fleet.Diff() +
				gone("charts/own/Chart.yaml", "name: own\n"),
		},
		"a network": {
			write(network, numbered("", 5000)) + write("addons/cni/cilium/kustomization.yaml", "resources: []\n") + write("addons/cni.yaml", long),
			"--- /dev/null\n+++ b/" + network + "\n… 5,000 lines of the manifests of a network\n" +
				write("addons/cni/cilium/kustomization.yaml", "resources: []\n") + write("addons/cni.yaml", long),
		},
		"lines that look like headers": {write("a", "++ b/x\n-- a/x\n") + fleet.Diff(), write("a", "++ b/x\n-- a/x\n") + fleet.Diff()},
		"a mode":                       {"mode of x: 644 -> 755\n" + fleet.Diff(), "mode of x: 644 -> 755\n" + fleet.Diff()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sumUp(test.diff); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Every difference comes out of its parts as it went in.
func FuzzSections(f *testing.F) {
	f.Add("a\nb\n", "a\nc\n", "--- x\n+++ y\n")
	f.Add("", "-- a\n++ b\n", "@@ -1 +1 @@\n")
	f.Fuzz(func(t *testing.T, before, after, second string) {
		one := manifest.Compare("one", []byte(before), []byte(after))
		two := manifest.Compare("two", nil, []byte(second))
		diff := one.Diff() + two.Diff()
		var b bytes.Buffer
		for _, s := range sections(diff) {
			b.WriteString(s.text)
		}
		if b.String() != diff {
			t.Errorf("got\n%q\nof\n%q", b.String(), diff)
		}
		if n := plain.Count(len(sections(diff)), "section"); before != after && second != "" && len(sections(diff)) != 2 {
			t.Errorf("%s of\n%q", n, diff)
		}
	})
}

// A chart of the team's own is shown whole: nobody else has read it.
func TestSumUpLeavesOwnCharts(t *testing.T) {
	diff := "--- /dev/null\n+++ b/charts/our-metal/Chart.yaml\n@@ -0,0 +1,1 @@\n+name: our-metal\n"
	if got := sumUp(diff); got != diff {
		t.Errorf("%q", got)
	}
}

func TestCountsOfOne(t *testing.T) {
	if got, want := Counts(map[string]int{"Cluster": 1}), "1 object (Cluster 1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
