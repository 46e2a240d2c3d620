//go:build e2e && clouds && upgrade

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The releases of AWS's provider in the bundle of this test: see scripts/offline/internal/recipe.
const awsBefore, awsNow = "v2.12.1", "v2.13.0"

// awsUpgradeFleet is a fleet.yaml with all providers pinned to an older release.
const awsUpgradeFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: upgrades
spec:
  environments:
  - name: dev
  managementClusters:
  - name: %s
    host: {type: embedded}
    kubernetesVersion: %s
    providers:
    - {name: cluster-api, type: core, version: v1.13.0}
    - {name: kubeadm, type: bootstrap, version: v1.13.0}
    - {name: kubeadm, type: control-plane, version: v1.13.0}
    - {name: aws, version: v2.12.1}
`

// awsUpgrade is a fleet with a cluster in a simulated AWS, whose providers are upgraded.
type awsUpgrade struct {
	*onAWS
	// objects, instances and made are what there was before the upgrade: see alive, and simulatedAWS.
	objects   map[string]string
	instances []string
	made      map[string]int
}

// TestAWSUpgrade brings AWS's provider, and Cluster API with it, from an older release to the pinned one, with a cluster alive across it:
// all its objects are the same afterwards, AWS was asked for nothing, and the new provider goes on where the old one was.
func TestAWSUpgrade(t *testing.T) {
	u := &awsUpgrade{onAWS: newOnAWSThatBoots(t, "e2e-aws-upgrade")}
	u.plays([]act{
		{"init with the older providers", u.inits},
		{"one commit makes a cluster that is Available", u.makesCluster},
		{"the plan says what will happen", u.plans},
		{"killed while AWS's provider is replaced", u.dies},
		{"init comes to its end, with the providers of fleet.yaml", u.upgrades},
		{"the cluster has lived on, and AWS was asked for nothing", u.livesOn},
		{"there is nothing left to upgrade", u.hasUpgraded},
		{"a commit scales its workers through the new provider", u.scales},
		{"no machine was replaced", u.keepsMachines},
		{"no credential is anywhere", u.keepsSecrets},
		{"cluster remove leaves the account empty", u.removes},
	})
}

func (u *awsUpgrade) inits(t *testing.T) {
	u.writes("fleet.yaml", fmt.Sprintf(awsUpgradeFleet, u.name, kubernetesVersion))
	made := decode[initResult](t, u.ok("init", "--bundle", os.Getenv(envBundle), "--timeout", "30m", "-o", "json").stdout)
	u.mgmt = u.client(made.Kubeconfig)
	u.providersRun(t, capiBefore, awsBefore)
}

// makesCluster makes the cluster, and keeps what must be there after the upgrade, too.
func (u *awsUpgrade) makesCluster(t *testing.T) {
	u.addsCluster("shop", append(u.oneWorker(), "--flux", "none")...) // no pods run there
	u.available("shop", 8*time.Minute)
	u.hasMachines(t, 1, 1)
	u.ready(3 * time.Minute)
	u.objects = alive(t, u.mgmt, awsKinds...)
	u.instances, u.made = u.runningInstances(t), u.aws.made(t)
	if countMachines(u.objects) != 2 || len(u.instances) != 2 {
		t.Fatalf("there are the objects %v and the instances %v", slices.Sorted(maps.Keys(u.objects)), u.instances)
	}
}

// awsKinds are the kinds of AWS's provider of which the cluster has objects.
var awsKinds = []schema.GroupVersionKind{
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "AWSCluster"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "AWSMachine"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "AWSMachineTemplate"},
}

// runningInstances are the ids of the instances that run.
func (u *awsUpgrade) runningInstances(t *testing.T) (ids []string) {
	t.Helper()
	all, err := u.aws.machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Running {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (u *awsUpgrade) plans(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(u.dir, "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("aws, version: "+awsBefore, "aws, version: "+awsNow, "version: "+capiBefore+"}", "version: "+capiNow+"}").
		Replace(string(content))
	u.commit("upgrade all providers", map[string]string{"fleet.yaml": text})
	u.plan(t, 3, map[string]string{
		"core cluster-api": capiBefore + " to " + capiNow, "bootstrap kubeadm": capiBefore + " to " + capiNow,
		"control-plane kubeadm": capiBefore + " to " + capiNow, "infrastructure aws": awsBefore + " to " + awsNow,
	})
	u.providersRun(t, capiBefore, awsBefore)
}

// hasUpgraded requires that the plan has nothing to do.
func (u *awsUpgrade) hasUpgraded(t *testing.T) { u.plan(t, 0, map[string]string{}) }

// plan requires that exit code of the plan, these steps, and that nothing is against them.
func (u *awsUpgrade) plan(t *testing.T, code int, want map[string]string) {
	t.Helper()
	r := u.run("upgrade", "plan", "--bundle", os.Getenv(envBundle), "-o", "json")
	if r.code != code {
		t.Errorf("exit %d, want %d: %s%s", r.code, code, r.stdout, r.stderr)
	}
	if steps := plannedSteps(t, r.stdout); !maps.Equal(steps, want) {
		t.Errorf("it plans %v, want %v", steps, want)
	}
	for _, c := range decode[struct {
		Components []struct {
			Name     string
			Against  []string
			Restarts []string
			Converts []string
		}
	}](t, r.stdout).Components {
		if len(c.Against) > 0 || len(c.Converts) > 0 || c.Name == "aws" && code == 3 && !slices.Equal(c.Restarts, []string{capa.Name}) {
			t.Errorf("it says %+v", c)
		}
	}
}

func (u *awsUpgrade) dies(t *testing.T) { u.killedUpgrading(t, u.mgmt, capa, awsBefore) }

func (u *awsUpgrade) upgrades(t *testing.T) {
	u.ok("init", "--bundle", os.Getenv(envBundle), "--timeout", "30m")
	u.providersRun(t, capiNow, awsNow)
}

func (u *awsUpgrade) livesOn(t *testing.T) {
	u.ready(3 * time.Minute)
	sameObjects(t, u.objects, alive(t, u.mgmt, awsKinds...))
	u.hasMachines(t, 1, 1)
	if now := u.runningInstances(t); !slices.Equal(now, u.instances) {
		t.Errorf("AWS runs %v, and ran %v", now, u.instances)
	}
	if now := u.aws.made(t); !maps.Equal(now, u.made) {
		t.Errorf("AWS has made %v, and had made %v", now, u.made)
	}
}

// keepsMachines requires, after the new provider has made two more machines, that it has made nothing else, and that the others are still
// the same.
func (u *awsUpgrade) keepsMachines(t *testing.T) {
	now := alive(t, u.mgmt, awsKinds...)
	for name, was := range u.objects {
		kind, _, _ := strings.Cut(name, " ")
		if slices.Contains([]string{"Machine", "KubeadmConfig", "AWSMachine", "AWSCluster", "KubeadmControlPlane"}, kind) && now[name] != was {
			t.Errorf("%s\nbefore %s\nafter  %s", name, was, now[name])
		}
	}
	running := u.runningInstances(t)
	for _, id := range u.instances {
		if !slices.Contains(running, id) {
			t.Errorf("%s is gone: %v", id, running)
		}
	}
	made := u.aws.made(t)
	for call, n := range u.made {
		if slices.Contains([]string{"RunInstances", "CreateSecret"}, call) {
			continue
		}
		if made[call] != n {
			t.Errorf("AWS has made %v, and had made %v", made, u.made)
		}
	}
	if made["RunInstances"] != u.made["RunInstances"]+2 {
		t.Errorf("AWS has started instances %d times, and had %d times", made["RunInstances"], u.made["RunInstances"])
	}
}
