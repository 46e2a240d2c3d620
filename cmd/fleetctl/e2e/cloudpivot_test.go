//go:build e2e && clouds

package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// pivotOnAWS is a fleet in a simulated AWS whose management cluster is to be one of its own clusters there.
type pivotOnAWS struct {
	*onAWS
	server     *gittest.HTTPS
	kubeconfig string // the file with the way to the permanent management cluster
	// What AWS had, and how often it had made each kind of thing, when the clusters were there and nothing had changed hands.
	before []string
	made   map[string]int
	// source is the way to the ephemeral management cluster, once it was asked.
	source *kube.Client
	// keyUses counts how often the key of the bootstrap was used by then.
	keyUses int
}

// platform becomes the management cluster, undoer takes it down in the end.
const platform, undoer = "platform", "e2e-undoer"

// roleKey is the access key that the simulator gives each machine for its role.
const roleKey = "test-key"

// TestAWSPivot: one command in a pipeline makes the permanent management cluster in AWS by way of an ephemeral one, which goes. The
// provider then runs in the cloud on machines that it manages itself: it makes nothing a second time, and a commit scales clusters through
// it.
func TestAWSPivot(t *testing.T) {
	p := newPivotOnAWS(t, "e2e-pivot")
	p.plays([]act{
		{"a fleet repo with two clusters in AWS, and no management cluster", p.declaresFleet},
		{"bootstrap makes them, hands over to one of them, and ends the ephemeral host", p.bootstraps},
		{"nothing is there twice, and nothing was made twice", p.hasNothingTwice},
		{"the key of the bootstrap is off the permanent one, and fleet.yaml says so", p.hasNoKey},
		{"no credential is anywhere", p.keepsSecrets},
		{"a commit scales both through the provider that runs on one of them", p.scalesBoth},
		{"a commit removes the other, with all that it had", p.removesShop},
		{"another management cluster takes it over and takes it down, which leaves the account empty", p.undoes},
	})
}

func newPivotOnAWS(t *testing.T, name string) *pivotOnAWS {
	t.Helper()
	p := &pivotOnAWS{onAWS: newOnAWSThatWorks(t, name), server: gittest.NewHTTPS(t, gittest.Options{})}
	p.kubeconfig = filepath.Join(p.base, platform+".kubeconfig")
	p.canaries.more = []string{p.server.Dir}
	return p
}

func (p *pivotOnAWS) declaresFleet(t *testing.T) { p.declaresFleetWith("") }

// declaresFleetWith writes a fleet.yaml with more in its spec, and declares the clusters.
func (p *pivotOnAWS) declaresFleetWith(more string) {
	p.t.Helper()
	p.servedBy(p.server, "aws", more)
	p.ok("init", "--scaffold")
	for name, flux := range map[string]string{platform: "none", "shop": "own"} {
		p.addsCluster(name, append(p.oneWorker(), "--flux", flux)...)
	}
}

// bootstrap is the command of a pipeline.
func (p *pivotOnAWS) bootstrap() []string {
	return []string{
		"bootstrap", "--pivot-to", platform, "--bundle", os.Getenv(envBundle), "--kubeconfig-out", p.kubeconfig,
		"--clusters-timeout", "45m", "-o", "json",
	}
}

func (p *pivotOnAWS) bootstraps(t *testing.T) {
	p.bootstrapsWith(t)
}

// bootstrapsWith runs bootstrap to its end. In the moment in which it reaches for the target it looks at what AWS has.
func (p *pivotOnAWS) bootstrapsWith(t *testing.T, more ...string) {
	t.Helper()
	args := append(p.bootstrap(), more...)
	t.Logf("$ fleetctl %s", strings.Join(args, " "))
	cmd := p.command(args...)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	progress := &echo{t: t}
	progress.line = func(line string) {
		p.counts(t, line)
		p.hides(t, cmd, line)
	}
	cmd.Stderr = progress
	err := cmd.Run()
	p.hears(stdout.String() + progress.String())
	if err != nil {
		t.Fatalf("fleetctl bootstrap: %v\n%s", err, stdout.String())
	}
	r := decode[struct {
		Outcome   string   `json:"outcome"`
		PivotedTo string   `json:"pivotedTo"`
		Kept      bool     `json:"kept"`
		Leftovers []string `json:"leftovers"`
		Clusters  []struct {
			Name      string `json:"name"`
			Available bool   `json:"available"`
		} `json:"clusters"`
	}](t, stdout.String())
	if r.Outcome != "ready" || r.PivotedTo != platform+"/"+platform || r.Kept || len(r.Leftovers) > 0 || len(r.Clusters) != 2 {
		t.Errorf("it says %+v", r)
	}
	if left := processesOf(t, p.base); len(left) > 0 { // what runs on the machines has its programs from the same store
		t.Errorf("of the ephemeral host there is still\n%s", told(left))
	}
	if p.made == nil {
		t.Fatal("it handed nothing over")
	}
	p.mgmt = p.client(p.kubeconfig)
}

// counts looks at what AWS has when a bootstrap says for the first time that it reaches for the target.
func (p *pivotOnAWS) counts(t *testing.T, line string) {
	if p.made == nil && strings.Contains(line, "reach the target cluster") {
		p.before, p.made = p.aws.left(t), p.aws.made(t)
	}
}

// hides looks for credentials while a bootstrap stands still: when it hands the work over, which it does by journals on both sides, and
// before the host goes, with its logs.
func (p *pivotOnAWS) hides(t *testing.T, cmd *exec.Cmd, line string) {
	if !strings.HasPrefix(line, "… hand the work over") && !strings.HasPrefix(line, "… wait until the clusters are as they were") {
		return
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	defer func() {
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}()
	if p.source == nil {
		p.source = p.client(filepath.Join(p.state, "clusters", p.name, "kubeconfig"))
	}
	p.canaries.areHidden(t, true, p.source)
}

// keepsSecrets looks for credentials when the work has changed hands: the permanent management cluster has none, and no support bundle of
// it has one.
func (p *pivotOnAWS) keepsSecrets(t *testing.T) {
	held := p.canaries.secrets
	p.canaries.secrets = nil
	defer func() { p.canaries.secrets = held }()
	p.canaries.inSupportBundle(t)
	p.canaries.areHidden(t, false, p.mgmt)
}

// hasNothingTwice requires that AWS has the same resources as before, and of each kind as many as two clusters need.
func (p *pivotOnAWS) hasNothingTwice(t *testing.T) {
	p.hasMachinesEach(t, 1)
	if now := p.aws.left(t); !slices.Equal(now, p.before) {
		t.Errorf("AWS has %v, and had %v", now, p.before)
	}
	if now := p.aws.made(t); !maps.Equal(now, p.made) {
		t.Errorf("AWS has made %v, and had made %v before", now, p.made)
	}
	have := kinds(p.before)
	hasEach(t, have, map[string]int{
		"vpc": 2, "subnet": 12, "internet-gateway": 2, "nat-gateway": 6, "address": 6, "load-balancer": 2, "target-group": 2, "instance": 4,
	})
	// All that two clusters are made of, deleted things included. How many secrets carry boot data depends on how long these are.
	for call, n := range map[string]int{
		"CreateVpc": 2, "CreateSubnet": 12, "CreateInternetGateway": 2, "AllocateAddress": 6, "CreateNatGateway": 6, "CreateRouteTable": 12,
		"CreateRoute": 12, "CreateSecurityGroup": 8, "CreateLoadBalancer": 2, "CreateTargetGroup": 2, "CreateListener": 2, "RunInstances": 4,
	} {
		if p.made[call] != n {
			t.Errorf("%s has made something %d times, and not %d", call, p.made[call], n)
		}
	}
	t.Logf("AWS has %v, by %v", have, p.made)
}

// hasMachinesEach waits until both clusters have one machine of the control plane and so many workers, all Ready, and AWS has no other
// instance.
func (p *pivotOnAWS) hasMachinesEach(t *testing.T, workers int) {
	t.Helper()
	eventually(t, fmt.Sprintf("both clusters have %d workers", workers), 6*time.Minute, func() string {
		st, code := p.status()
		if code != 0 || len(st.Clusters) != 2 {
			return fmt.Sprintf("exit %d, %d clusters, %+v", code, len(st.Clusters), st.Problems)
		}
		for _, c := range st.Clusters {
			ready := 0
			for _, m := range c.Machines {
				if m.Ready {
					ready++
				}
			}
			if !c.Available || ready != workers+1 || len(c.Machines) != ready {
				return fmt.Sprintf("%s has %d machines, of which %d are Ready: %+v", c.Name, len(c.Machines), ready, st.Problems)
			}
		}
		return ""
	})
	if n := kinds(p.aws.left(t))["instance"]; n != 2*(workers+1) {
		t.Errorf("AWS has %d instances", n)
	}
}

// hasNoKey requires that the provider works with what its machine's role gives, and that no later run gives the key back.
func (p *pivotOnAWS) hasNoKey(t *testing.T) {
	secret, err := p.mgmt.SecretValue(t.Context(), capaCredentials, "credentials")
	if err != nil || strings.TrimSpace(string(secret)) != "" {
		t.Errorf("the Secret has %d bytes: %v", len(secret), err)
	}
	if file := p.server.File(t, "main", "fleet.yaml"); !strings.Contains(file, "AWS_B64ENCODED_CREDENTIALS") ||
		!strings.Contains(file, "value: Cg==") {
		t.Errorf("fleet.yaml does not say so:\n%s", file)
	}
	if p.aws.uses(t, roleKey) == 0 {
		t.Error("nobody has asked with what the role gives")
	}
	p.keyUses = p.aws.uses(t, firstKey)
}

func (p *pivotOnAWS) scalesBoth(t *testing.T) {
	for _, name := range []string{platform, "shop"} {
		p.ok("pool", "scale", name, "general", "--replicas", "2", "--push")
	}
	p.hasMachinesEach(t, 2)
	if now := p.aws.uses(t, firstKey); now != p.keyUses {
		t.Errorf("the key of the bootstrap was used %d times, and %d times before: somebody has it still", now, p.keyUses)
	}
	if now := p.aws.made(t); now["RunInstances"] != p.made["RunInstances"]+2 || now["CreateVpc"] != p.made["CreateVpc"] {
		t.Errorf("AWS has made %v, and had made %v before", now, p.made)
	}
}

// removesShop leaves what platform has: half of all.
func (p *pivotOnAWS) removesShop(t *testing.T) {
	p.ok("cluster", "remove", "shop", "--push", "--wait", "--timeout", "9m")
	p.ok("cluster", "remove", "shop", "--yes", "--push", "--wait", "--timeout", "18m")
	hasEach(t, kinds(p.aws.left(t)), map[string]int{
		"vpc": 1, "subnet": 6, "internet-gateway": 1, "nat-gateway": 3, "address": 3, "load-balancer": 1, "target-group": 1, "instance": 3,
	})
}

// hasEach requires of each of these kinds that there are so many.
func hasEach(t *testing.T, have, want map[string]int) {
	t.Helper()
	for kind, n := range want {
		if have[kind] != n {
			t.Errorf("there are %d of %s, and not %d", have[kind], kind, n)
		}
	}
}

// undoes gives platform to a management cluster beside it, which can delete it: it cannot delete the machines that it runs on itself.
func (p *pivotOnAWS) undoes(t *testing.T) {
	p.ok("management", "add", undoer, "--provider", "aws", "--host", "embedded", "--push")
	p.ok("init", "--management", undoer, "--bundle", os.Getenv(envBundle))
	p.ok("cluster", "transfer", platform, "--to", undoer, "--push", "--yes")
	if now := kinds(p.aws.left(t)); now["vpc"] != 1 || now["instance"] != 3 {
		t.Errorf("AWS has %v", now)
	}
	p.ok("teardown", "--management", undoer, "--delete-clusters", "--yes", "--timeout", "30m")
	if left := p.aws.left(t); len(left) > 0 {
		t.Errorf("AWS has still %v", left)
	}
}
