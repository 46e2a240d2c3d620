package fleetrepo

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Every flavour's example makes a cluster. The error about a required value names the value, with an example that works.
func TestAddEveryFlavour(t *testing.T) {
	for _, flavour := range must(scaffold.Flavours()) {
		t.Run(flavour, func(t *testing.T) {
			r := open(t)
			if provider := providerOf(flavour); provider != "docker" && provider != "aws" {
				fleet := strings.Replace(string(must(r.read("fleet.yaml"))), "- name: aws", "- name: "+provider, 1)
				write(t, r.Dir, "fleet.yaml", []byte(fleet))
				r = reopen(t, r.Dir)
			}
			opts := AddOptions{Name: "new", Environment: "dev", Flavour: flavour, KubernetesVersion: "v1.36.3"}
			_, err := r.Add(opts)
			if err != nil {
				hint := strings.TrimPrefix(diag.Hint(err), "for example: ")
				opts.Set = mustAssign(t, slices.DeleteFunc(strings.Split(" "+strings.ReplaceAll(hint, "'", ""), " --set "),
					func(s string) bool { return s == "" })...)
			}
			e, err := r.Add(opts)
			_, r = done(t, r, e, err)
			c, err := r.Cluster("new")
			if err != nil || c.Flavour != flavour || c.KubernetesVersion != "v1.36.3" || len(c.Pools) == 0 {
				t.Errorf("got %+v, %v", c, err)
			}
			e, err = r.Add(opts)
			if diff, _ := done(t, r, e, err); diff != "" {
				t.Errorf("a second time:\n%s", diff)
			}
			opts.Set = append(opts.Set, mustAssign(t, "labels.a=b")...)
			if _, err := r.Add(opts); err == nil || !strings.Contains(err.Error(), "there is a cluster new already") {
				t.Errorf("a second time, otherwise: %v", err)
			}
		})
	}
}

// A tag of digits is text, as the chart wants it.
func TestAddTakesDigitsForText(t *testing.T) {
	e, err := open(t).Add(AddOptions{
		Name: "x", Environment: "dev", Flavour: "aws-eks",
		Set: mustAssign(t, "region=eu-central-1", "tags.cost=0815"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(e.Changes.Files(), func(f manifest.File) bool { return strings.Contains(string(f.Content), `cost: "0815"`) }) {
		t.Error("the tag is not in the files as it was typed")
	}
}

func TestAddRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		opts      AddOptions
		err, hint string
	}{
		"flavour": {
			AddOptions{Name: "x", Environment: "dev", Flavour: "in-memroy", ManagementCluster: "laptop"},
			`there is no flavour "in-memroy"`, "did you mean in-memory?",
		},
		"environment": {AddOptions{Name: "x", Environment: "dve", Flavour: "in-memory"}, `there is no environment "dve"`, "did you mean dev?"},
		"name":        {AddOptions{Name: "X_1", Environment: "dev", Flavour: "in-memory"}, "is not a DNS label", ""},
		"path":        {AddOptions{Name: "../x", Environment: "dev", Flavour: "in-memory"}, "is not a DNS label", ""},
		"provider": {
			AddOptions{Name: "x", Environment: "dev", Flavour: "gcp-gke", ManagementCluster: "laptop"},
			"has no infrastructure provider gcp", "`fleetctl provider add gcp --management laptop`",
		},
		"value": {
			AddOptions{
				Name: "x", Environment: "dev", Flavour: "in-memory",
				Values: map[string]any{"pools": []any{map[string]any{"name": "a", "replicaz": 3}}},
			},
			"pools[0].replicaz: flavour in-memory has no such value (did you mean replicas?)", "",
		},
		"version": {
			AddOptions{Name: "x", Environment: "dev", Flavour: "in-memory", KubernetesVersion: "1.36.3"},
			`version "1.36.3" does not start with v`, "did you mean v1.36.3?",
		},
		"misspelt": {
			AddOptions{Name: "x", Environment: "dev", Flavour: "aws-eks", Set: mustAssign(t, "regoin=eu-central-1")},
			"regoin: flavour aws-eks has no such value (did you mean region?)", "",
		},
		"missing": {
			AddOptions{Name: "x", Environment: "dev", Flavour: "aws-eks"},
			"flavour aws-eks needs values for region",
			"--set region=eu-central-1",
		},
	} {
		_, err := open(t).Add(tc.opts)
		if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(diag.Hint(err), tc.hint) {
			t.Errorf("%s: got %v (%s); want %s (%s)", name, err, diag.Hint(err), tc.err, tc.hint)
		}
	}
}
