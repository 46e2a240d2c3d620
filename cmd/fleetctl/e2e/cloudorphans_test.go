//go:build e2e && clouds

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// orphanReport is what orphans prints with -o json.
type orphanReport struct {
	Complete bool `json:"complete"`
	Clouds   []struct {
		Regions []string `json:"regions"`
	} `json:"clouds"`
	Unasked []struct {
		Name string `json:"name"`
	} `json:"managementClustersNotAsked"`
	Clusters []struct {
		Name      string `json:"name"`
		Proven    bool   `json:"proven"`
		Declared  bool   `json:"declared"`
		Resources []struct {
			Kind  string `json:"kind"`
			ID    string `json:"id"`
			Proof string `json:"proof"`
		} `json:"resources"`
	} `json:"clusters"`
	Others int `json:"ofOtherFleets"`
}

func (a *onAWS) hasNoOrphans(t *testing.T) {
	r := decode[orphanReport](t, a.ok("orphans", "-o", "json").stdout)
	if !r.Complete || len(r.Clusters) > 0 || len(r.Clouds) != 1 || !slices.Contains(r.Clouds[0].Regions, a.aws.Region) {
		t.Errorf("orphans says %+v", r)
	}
	before := a.aws.left(t)
	refused := a.fails(1, nil, "orphans", "--delete", "shop", "--yes")
	if !strings.Contains(refused.stderr, "management cluster "+a.name+" manages the cluster shop") {
		t.Errorf("it does not say who has it:\n%s", refused.stderr)
	}
	if now := a.aws.left(t); !slices.Equal(now, before) {
		t.Errorf("AWS has %v, and had %v", now, before)
	}
}

// TestAWSOrphans: the management cluster is lost with its machine, and a workload cluster lives on in AWS. orphans lists and deletes the
// cluster's resources, and no resource of another fleet in the same account.
func TestAWSOrphans(t *testing.T) {
	a := newOnAWS(t, "e2e-orphans")
	if !a.step("init with the AWS provider", a.inits) || !a.step("a commit makes a cluster's infrastructure", a.declares) {
		return
	}
	a.gone(t)
	var before, others []string
	a.step("others use the account, too", func(t *testing.T) {
		before = a.aws.left(t)
		ask[bool](t, a.aws.URL+"/_test/strangers")
		others = slices.DeleteFunc(a.aws.left(t), func(one string) bool { return slices.Contains(before, one) })
		if len(others) == 0 {
			t.Fatal("there is nothing of others")
		}
	})
	a.step("all that the cluster has is listed", func(t *testing.T) {
		run := a.run("orphans", "-o", "json")
		r := decode[orphanReport](t, run.stdout)
		if run.code != 3 || r.Complete || len(r.Unasked) != 1 || r.Unasked[0].Name != a.name || r.Others != 1 {
			t.Errorf("exit %d, %+v", run.code, r)
		}
		var listed []string
		for _, c := range r.Clusters {
			if c.Name != "shop" {
				if c.Name != "unknown" || c.Proven {
					t.Errorf("cluster %s is listed, proven %v", c.Name, c.Proven)
				}
				continue
			}
			// A stranger's subnet is among them: its tags name a cluster called shop, and no fleet.
			if c.Proven || !c.Declared {
				t.Errorf("%+v", c)
			}
			for _, resource := range c.Resources {
				listed = append(listed, resource.ID)
				if foreign := slices.Contains(others, resource.Kind+"/"+resource.ID); foreign != (resource.Proof == "none") {
					t.Errorf("%+v is a stranger's: %v", resource, foreign)
				}
			}
		}
		for _, one := range before {
			kind, id, _ := strings.Cut(one, "/")
			// Of these the simulator makes some by itself, which have no tags and go with what they are of.
			byItself := kind == "network-interface" || kind == "route-table" || kind == "security-group" || kind == "volume"
			if !slices.Contains(listed, id) && !byItself {
				t.Errorf("%s is not listed", one)
			}
		}
		t.Logf("%d are listed of %v", len(listed), kinds(before))
		t.Log(a.run("orphans", "--region", a.aws.Region).stdout)
	})
	a.step("an error is never none", func(t *testing.T) {
		t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
		if r := a.run("orphans", "--region", a.aws.Region); r.code != 3 || !strings.Contains(r.stdout, "could not be asked") {
			t.Errorf("exit %d\n%s", r.code, r.stdout)
		}
	})
	a.step("nothing is deleted that may be somebody's", func(t *testing.T) {
		a.deletesNothingYet(t, "Would delete vpc ", func() []string { return a.aws.left(t) })
	})
	a.step("what is the fleet's goes, and nothing else", func(t *testing.T) {
		// A stranger's subnet stays, in whose tags there is a cluster of the same name.
		a.deletesOrphans(t, 10, others, func() []string { return a.aws.left(t) })
	})
}

// deletesNothingYet asks orphans to delete the cluster shop, whose management cluster is gone, in all ways that it has to refuse; left is
// what its cloud has.
func (f *fleet) deletesNothingYet(t *testing.T, would string, left func() []string) {
	t.Helper()
	everything := left()
	r := f.fails(1, nil, "orphans", "--delete", "shop", "--yes")
	if !strings.Contains(r.stderr, "management cluster "+f.name+" could not be asked, and may own the cluster shop") ||
		!strings.Contains(r.stderr, "--gone "+f.name) {
		t.Errorf("it does not say who may own it:\n%s", r.stderr)
	}
	f.fails(2, nil, "orphans", "--delete", "shop", "--gone", "another", "--yes")
	if r := f.fails(1, nil, "orphans", "--delete", "shop", "--gone", f.name, "--yes"); !strings.Contains(r.stderr,
		"the fleet repo still declares the cluster shop") {
		t.Errorf("it does not say that it is declared:\n%s", r.stderr)
	}
	f.ok("cluster", "remove", "shop", "--commit")
	f.ok("cluster", "remove", "shop", "--yes", "--commit")                     // its management cluster, which would delete it, is gone
	f.fails(2, nil, "orphans", "--delete", "shopp", "--gone", f.name, "--yes") // there is nothing of that name
	f.fails(2, nil, "orphans", "--delete", "shop", "--gone", f.name)           // nobody is at a terminal to type its name
	if r := f.run("orphans", "--delete", "shop", "--gone", f.name, "--dry-run"); r.code != 3 || !strings.Contains(r.stdout, would) {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if now := left(); !slices.Equal(now, everything) {
		t.Errorf("the cloud has %v, and had %v", now, everything)
	}
}

// deletesOrphans deletes the resources of the cluster shop in its cloud, and requires at least as many as least. The resources in others
// stay, although one of them looks like the cluster's.
func (f *fleet) deletesOrphans(t *testing.T, least int, others []string, left func() []string) {
	t.Helper()
	run := f.run("orphans", "--delete", "shop", "--gone", f.name, "--yes", "-o", "json")
	t.Logf("%s", run.stderr)
	r := decode[struct {
		Planned, Deleted []struct {
			ID string `json:"id"`
		}
		Left []struct {
			Kind string `json:"kind"`
			ID   string `json:"id"`
			Why  string `json:"why"`
		} `json:"left"`
	}](t, run.stdout)
	if run.code != 3 || len(r.Deleted) < least || len(r.Deleted) != len(r.Planned) || len(r.Left) != 1 ||
		!slices.Contains(others, r.Left[0].Kind+"/"+r.Left[0].ID) {
		t.Errorf("exit %d, %+v", run.code, r)
	}
	if now := left(); !slices.Equal(now, others) {
		t.Errorf("the cloud has %v, and others have %v", now, others)
	}
	if again := f.run("orphans", "--delete", "shop", "--gone", f.name, "--yes"); again.code != 3 ||
		strings.Contains(again.stdout, "Deleted") {
		t.Errorf("the second time: exit %d\n%s", again.code, again.stdout)
	}
}

// gone ends the management cluster, and deletes this machine's state folder.
func (f *fleet) gone(t *testing.T) {
	t.Helper()
	kill(t, f.on.processes(f))
	eventually(t, "all is off", time.Minute, func() string { return told(f.on.processes(f)) })
	f.forgets()
}
