//go:build integration

package why

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/status"
)

func TestWhy(t *testing.T) {
	b := newBed(t)
	waits := conditions(condition("Ready", "False", "WaitingForClusterInfrastructureReady", ""))
	denied := "failed to create vpc: UnauthorizedOperation: You are not authorized\x1b[2J to perform: ec2:CreateVpc"
	for _, c := range []struct {
		name string
		make func(name string)
		// gone: only the fleet repo has it.
		gone, ready bool
		// first cause: its object, a part of what it says, and its remedy.
		object, says, remedy string
		// another cause, or "".
		another string
	}{
		{
			name: "well", ready: true,
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, available(), fine, fine, fine, fine)
			},
		},
		{
			name: "twice", object: "Cluster twice/twice", says: "TWO OWNERS: management cluster second", remedy: "two-owners",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, available(), fine, fine, fine, fine)
				b.owner(n, capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "of-another", Epoch: 2})
			},
		},
		{
			name: "denied", object: "AWSCluster denied/denied", says: "UnauthorizedOperation", remedy: "cloud-permissions",
			make: func(n string) {
				b.fluxOf(n, fine, `conditions: [`+condition("Ready", "False", "HealthCheckFailed",
					"timeout waiting for: [Cluster/denied/denied status: 'InProgress']")+`], observedGeneration: 1`, fine)
				b.cluster(n, notAvailable(condition("InfrastructureReady", "False", "NotReady", "6 of 8 completed")),
					conditions(condition("Ready", "False", "VpcReconciliationFailed", denied),
						condition("VpcReady", "False", "VpcReconciliationFailed", denied)), waits, waits, waits)
			},
		},
		{
			name: "words", object: "AWSMachine words/words-m0", says: "not provisioned", remedy: "cloud-capacity",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, conditions(condition("Initialized", "False", "NotInitialized", "Control plane not yet initialized")),
					conditions(condition("InfrastructureReady", "False", "NotReady", "AWSMachine is not ready")),
					conditions(condition("InstanceReady", "False", "InstanceProvisionFailed", "not provisioned")))
				b.warn(n, "AWSMachine", n+"-m0", "FailedCreate", "InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity")
			},
		},
		{
			name: "boots", object: "Machine boots/boots-m0", says: "Waiting for Cluster control plane to be initialized", remedy: "bootstrap-failed",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, conditions(condition("Initialized", "False", "NotInitialized", "")),
					conditions(condition("Available", "False", "NotReady", ""),
						condition("NodeHealthy", "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")), fine)
			},
		},
		{
			// Seconds after the machine of its control plane was made: a worker's configuration waits for that, and says nothing of the certificates
			// yet.
			name: "young", object: "Machine young/young-m0", says: "Waiting for Cluster control plane to be initialized", remedy: "bootstrap-failed",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, conditions(condition("Initialized", "False", "NotInitialized", "")),
					conditions(condition("Available", "False", "NotReady", ""),
						condition("NodeHealthy", "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")), fine)
				const list = "* DataSecretAvailable: Waiting for Cluster control plane to be initialized\n* CertificatesAvailable: Condition not " +
					"yet reported"
				b.worker(n, conditions(condition("BootstrapConfigReady", "False", "NotReady", list)),
					conditions(condition("Ready", "False", "NotReady", list),
						condition("DataSecretAvailable", "False", "NotAvailable", "Waiting for Cluster control plane to be initialized")))
			},
		},
		{
			// A health check counts machines that have not started, and says that it replaces none of them.
			name: "starts", object: "Machine starts/starts-m0", says: "Waiting for Cluster control plane to be initialized",
			remedy: "bootstrap-failed",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, conditions(condition("Initialized", "False", "NotInitialized", "")),
					conditions(condition("Available", "False", "NotReady", ""),
						condition("NodeHealthy", "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")), fine)
				b.healthCheck(n, 0)
			},
		},
		{
			// What is wrong with the machines comes first, and then why nothing replaces them.
			name: "sick", object: "Machine sick/sick-m0", says: "on Node is reporting status Unknown", remedy: "node-unhealthy",
			another: "MachineHealthCheck sick/sick-pools",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, fine,
					conditions(condition("HealthCheckSucceeded", "False", "UnhealthyNode",
						"Health check failed:\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s")), fine)
				b.healthCheck(n, 3)
			},
		},
		{
			name: "stopped", object: "MachineHealthCheck stopped/stopped-pools", says: "TooManyUnhealthy", remedy: "unhealthy-machines",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, fine, fine, fine)
				b.healthCheck(n, 3)
			},
		},
		{
			name: "unread", gone: true, object: "GitRepository flux-system/unread", says: "authentication required", remedy: "git-authentication",
			make: func(n string) {
				b.fluxOf(n, conditions(condition("Ready", "False", "GitOperationFailed",
					"unable to list remote: authentication required: Unauthorized")),
					conditions(condition("Ready", "False", "ArtifactFailed", "Source artifact not found, retrying in 30s")), "")
			},
		},
		{
			name: "unmade", gone: true, object: "HelmRelease unmade/unmade", says: "clusters/unmade/cluster.yaml declares it", remedy: "not-made",
			make: func(n string) { b.fluxOf(n, fine, fine, "") },
		},
		{
			name: "hooked", object: "HelmRelease hooked/hooked", says: "failed calling webhook", remedy: "webhook",
			make: func(n string) {
				b.fluxOf(n, fine, fine, conditions(condition("Ready", "False", "UpgradeFailed",
					"Helm upgrade failed: failed calling webhook \"x\": connect: connection refused")))
				b.cluster(n, available(), fine, fine, fine, fine)
			},
		},
		{
			name: "both", object: "AWSCluster both/both", says: "VpcLimitExceeded", remedy: "cloud-quota",
			another: "Kustomization flux-system/clusters-both",
			make: func(n string) {
				b.fluxOf(n, fine, conditions(condition("Ready", "False", "BuildFailed", "kustomize build failed: accumulating resources")), fine)
				b.cluster(n, notAvailable(), conditions(condition("VpcReady", "False", "VpcReconciliationFailed",
					"VpcLimitExceeded: The maximum number of VPCs has been reached.")), waits, waits, waits)
			},
		},
		{
			name: "held", object: "HelmRelease held/held", says: "it is suspended", remedy: "suspended",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				release := object(`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: held, name: held}}`)
				if err := b.Get(t.Context(), kube.RefOf(release).Key, release); err != nil {
					t.Fatal(err)
				}
				if err := unstructured.SetNestedField(release.Object, true, "spec", "suspend"); err != nil {
					t.Fatal(err)
				}
				if err := b.Update(t.Context(), release); err != nil {
					t.Fatal(err)
				}
				b.cluster(n, available(), fine, fine, fine, fine)
			},
		},
		{
			name: "waiting", object: "AWSCluster waiting/waiting", says: "no controller has looked at it yet",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), "", waits, waits, waits)
				if err := b.clearStatus("AWSCluster", n); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.namespace(c.name)
			c.make(c.name)
			r := b.why(c.name, c.gone)
			var shown bytes.Buffer
			if err := View(&shown, r, status.Style{}); err != nil {
				t.Fatal(err)
			}
			t.Log("\n" + shown.String())
			if r.Ready != c.ready || len(r.Unknown) > 0 {
				t.Errorf("ready %v, unknown %v", r.Ready, r.Unknown)
			}
			if c.object == "" {
				if len(r.Causes) > 0 {
					t.Errorf("causes of nothing: %+v", r.Causes)
				}
				return
			}
			if len(r.Causes) == 0 {
				t.Fatal("no cause")
			}
			first := r.Causes[0]
			id := ""
			if first.Remedy != nil {
				id = first.Remedy.ID
			}
			if first.Object != c.object || !strings.Contains(first.Reason, c.says) || id != c.remedy {
				t.Errorf("the first cause is %s: %s (%s)", first.Object, first.Reason, id)
			}
			if c.another == "" && len(r.Causes) > 1 || c.another != "" &&
				!slices.ContainsFunc(r.Causes, func(o Cause) bool { return o.Object == c.another }) {
				t.Errorf("causes: %+v", r.Causes)
			}
			lines := strings.Split(shown.String(), "\n")
			if at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, c.object) }); at != 2 {
				t.Errorf("the first cause stands on line %d", at+1)
			}
		})
	}

	t.Run("a provider that does not run comes first", func(t *testing.T) {
		b.deployment(false)
		r := b.why("waiting", false)
		if len(r.Causes) == 0 || r.Causes[0].Object != "infrastructure provider aws" || r.Causes[0].Remedy == nil ||
			r.Causes[0].Remedy.ID != "controller-down" {
			t.Errorf("got %+v", r.Causes)
		}
		b.deployment(true)
	})
	t.Run("nobody knows it", func(t *testing.T) {
		_, err := Collect(t.Context(), Sources{Client: b.Client, Management: "mgmt", Cluster: "nobody"})
		if diag.Code(err) != diag.ExitUsage || !strings.Contains(diag.Hint(err), "denied/denied") {
			t.Errorf("got %v, hint %q", err, diag.Hint(err))
		}
	})
	t.Run("in depth", func(t *testing.T) { inDepth(t, b) })
	t.Run("two owners", func(t *testing.T) { twoOwners(t, b) })
	t.Run("handed over", func(t *testing.T) { handedOver(t, b) })
}

// handedOver: a hand-over of the cluster that is under way is the first cause, with the command that ends it. A cluster that was handed
// over is named with the management cluster that has it now.
func handedOver(t *testing.T, b *bed) {
	ctx := t.Context()
	b.namespace(handover.JournalKey.Namespace)
	says := func(journal string) {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}}
		if err := client.IgnoreNotFound(b.WithWatch.Delete(ctx, secret)); err != nil {
			t.Fatal(err)
		}
		secret.Data = map[string][]byte{"journal": []byte(journal)}
		if err := b.Create(ctx, secret); err != nil {
			t.Fatal(err)
		}
	}
	journal := func(phase handover.Phase, selected string) string {
		return `{"formatVersion": "1", "id": "h", "role": "source", "phase": "` + string(phase) + `", "source": {"name": "mgmt"},
			"target": {"name": "second"}, "select": [` + selected + `]}`
	}
	first := func(name string, declared bool) Cause {
		t.Helper()
		r := b.why(name, declared)
		if len(r.Causes) == 0 {
			return Cause{}
		}
		if r.Ready {
			t.Errorf("%s is ready, with %+v", name, r.Causes[0])
		}
		return r.Causes[0]
	}
	says(journal(handover.PhaseCopied, `"well/well"`))
	if c := first("well", false); !strings.Contains(c.Reason, "the transfer of well/well, from mgmt to second") ||
		!strings.Contains(c.Reason, "`fleetctl cluster transfer well --abort`") || c.Remedy == nil || c.Remedy.ID != "hand-over" {
		t.Errorf("a transfer is under way: %+v", c)
	}
	says(journal(handover.PhaseCommitted, ``))
	if c := first("well", false); !strings.Contains(c.Reason, "`fleetctl pivot`") || strings.Contains(c.Reason, "--abort") {
		t.Errorf("a pivot is under way: %+v", c)
	}
	says(journal(handover.PhaseCopied, `"other/other"`))
	if c := first("well", false); c.Reason != "" {
		t.Errorf("the transfer of another cluster is under way: %+v", c)
	}
	says(journal(handover.PhaseReleased, `"away/away"`))
	if c := first("away", true); !strings.Contains(c.Reason, "management cluster second manages it now") ||
		!strings.Contains(c.Reason, "`fleetctl why away --management second`") || c.Remedy == nil || c.Remedy.ID != "handed-over" {
		t.Errorf("it was transferred, and the fleet repo here has it still: %+v", c)
	}
	_, err := Collect(ctx, Sources{Client: b.Client, Management: "mgmt", Cluster: "away"})
	if diag.Code(err) != diag.ExitUsage || !strings.Contains(err.Error(), "second manages it now") ||
		!strings.Contains(diag.Hint(err), "fleetctl why away --management second") {
		t.Errorf("it was transferred: %v: %s", err, diag.Hint(err))
	}
}

// twoOwners: status, and status in depth, compare the owner of a cluster with the management cluster that they ask.
func twoOwners(t *testing.T, b *bed) {
	system := object(`{apiVersion: v1, kind: Namespace}`)
	if err := b.Get(t.Context(), kube.Key{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	report := func() *status.Fleet {
		r := status.Collect(t.Context(), status.Sources{Cluster: status.Cluster{Name: "mgmt", State: "running"}, Client: b.Client})
		i := slices.IndexFunc(r.Clusters, func(c status.Fleet) bool { return c.Name == "twice" })
		return &r.Clusters[i]
	}
	depth := func() (*Depth, string) {
		d, err := CollectDepth(t.Context(), Sources{Client: b.Client, Management: "mgmt", Cluster: "twice", FleetID: "f"})
		if err != nil {
			t.Fatal(err)
		}
		var shown bytes.Buffer
		if err := DepthView(&shown, d, status.Style{}); err != nil {
			t.Fatal(err)
		}
		return d, shown.String()
	}
	if c := report(); !c.TwoOwners || !c.Elsewhere {
		t.Errorf("status takes its owner for its own: %+v", c)
	}
	if d, shown := depth(); d.Ready || d.Owner != "second" || !strings.Contains(shown, "owner second") ||
		!strings.Contains(shown, "TWO OWNERS: ") {
		t.Errorf("ready %t, it shows\n%s", d.Ready, shown)
	}
	b.owner("twice", capi.Owner{Fleet: "f", ManagementCluster: "mgmt", UID: string(system.GetUID()), Epoch: 3})
	if c := report(); c.TwoOwners || c.Elsewhere {
		t.Errorf("status takes its own cluster for another's: %+v", c)
	}
	if d, shown := depth(); !d.Ready || d.Owner != "" || strings.Contains(shown, "wner") {
		t.Errorf("ready %t, it shows\n%s", d.Ready, shown)
	}
	ownRecordOf(t, b, "twice", capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "of-another", Epoch: 3})
	if d, shown := depth(); d.Ready || d.Owner != "" ||
		!strings.Contains(shown, "TWO OWNERS: its own record says that management cluster second") {
		t.Errorf("another in its own record: ready %t, it shows\n%s", d.Ready, shown)
	}
	r, err := Collect(t.Context(), Sources{Client: b.Client, Management: "mgmt", Cluster: "twice", FleetID: "f"})
	if err != nil || len(r.Causes) != 1 || r.Causes[0].Remedy == nil || r.Causes[0].Remedy.ID != "two-owners" {
		t.Errorf("another in its own record: %+v, %v", r, err)
	}
}

// ownRecordOf starts the API server of a workload cluster, which has this record of its owner.
func ownRecordOf(t *testing.T, b *bed, name string, owner capi.Owner) {
	t.Helper()
	ctx := t.Context()
	workload, kubeconfig := kubetest.Start(t)
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.OwnerKey.Namespace, Name: handover.OwnerKey.Name},
		Data:       map[string]string{"owner": owner.String()},
	}
	if err := workload.Create(ctx, record); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig},
	}
	if err := b.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
	root := object(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster}`)
	if err := b.Get(ctx, kube.Key{Namespace: name, Name: name}, root); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(root.Object, true, "status", "initialization", "controlPlaneInitialized"); err != nil {
		t.Fatal(err)
	}
	if err := b.Update(ctx, root); err != nil { // the CRDs of the bed have no subresource for the status
		t.Fatal(err)
	}
}

// inDepth: the provider's own objects, below what owns them, what their conditions say, and the last events.
func inDepth(t *testing.T, b *bed) {
	d, err := CollectDepth(t.Context(), Sources{Client: b.Client, Management: "mgmt", Cluster: "words"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range d.Objects {
		got = append(got, strings.Repeat(" ", o.Depth)+o.Kind+" "+o.Name+" "+string(o.State))
	}
	want := []string{
		"Cluster words wrong", " AWSCluster words ok", " KubeadmControlPlane words wrong", "  Machine words-m0 wrong",
		"   AWSMachine words-m0 wrong",
	}
	if !slices.Equal(got, want) || d.Ready {
		t.Errorf("ready %v:\n%s", d.Ready, strings.Join(got, "\n"))
	}
	if len(d.Events) != 1 || d.Events[0].Object != "AWSMachine words-m0" ||
		!strings.Contains(d.Events[0].Message, "InsufficientInstanceCapacity") {
		t.Errorf("events: %+v", d.Events)
	}
	var shown bytes.Buffer
	if err := DepthView(&shown, d, status.Style{}); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + shown.String())
	rows := 0
	for line := range strings.Lines(shown.String()) {
		if strings.Contains(line, "InstanceReady") && strings.Contains(line, "InstanceProvisionFailed: not provisioned") {
			rows++
		}
	}
	if rows != 1 || !strings.Contains(shown.String(), "WHAT") || !strings.Contains(shown.String(), "last events") {
		t.Errorf("got\n%s", shown.String())
	}
}
