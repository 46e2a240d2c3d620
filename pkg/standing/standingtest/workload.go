package standingtest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// NewWorkload is a Cluster of Cluster API with an infrastructure of a kind that nobody serves.
func NewWorkload(namespace, name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: name,
		}},
	}
}

// MakeCluster installs Cluster API's own CRDs and makes a Cluster, as somebody's commit would.
func (c *Cluster) MakeCluster(ctx context.Context, t *testing.T) {
	t.Helper()
	kubetest.ClusterAPI(t, c.Client, "clusters", "machines")
	if err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Create(ctx, NewWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
}

// TakeWithCluster takes the cluster as a management cluster of the fleet, and makes a Cluster there.
func (c *Cluster) TakeWithCluster(ctx context.Context, t *testing.T) *session.Session {
	t.Helper()
	s, err := c.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	c.MakeCluster(ctx, t)
	return s
}

// WithFlux is a management cluster of the fleet whose Flux follows its repo, with the kinds of Cluster API and no Cluster yet.
func (c *Cluster) WithFlux(ctx context.Context, t *testing.T) *management.Target {
	t.Helper()
	c.FollowSomething(ctx, t, c.Git.URL, "main", "providers/docker/v1/mgmt")
	c.TakeWithCluster(ctx, t)
	if err := c.Client.WithWatch.Delete(ctx, NewWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
	target, err := management.Find(c.Deps.Store, "", c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// WithBalancer makes the workload cluster alpha with a real API server, in which a Service has a load balancer.
func (c *Cluster) WithBalancer(ctx context.Context, t *testing.T) *kube.Client {
	t.Helper()
	if err := c.Client.Create(ctx, NewWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
	workload, kubeconfig := kubetest.Start(t)
	c.LeadInto(ctx, t, "alpha", kubeconfig)
	balancer := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := workload.Create(ctx, balancer); err != nil {
		t.Fatal(err)
	}
	return workload
}

// LeadInto makes the kubeconfig of a Cluster lead to an API server.
func (c *Cluster) LeadInto(ctx context.Context, t *testing.T, cluster string, kubeconfig []byte) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: cluster + "-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig},
	}
	if err := c.Client.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
}

// StandsUntouched fails unless the Cluster is as it was made.
func (c *Cluster) StandsUntouched(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	found := &clusterv1.Cluster{}
	if err := c.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: name}, found); err != nil || !found.DeletionTimestamp.IsZero() {
		t.Errorf("%s: %v, %v", name, found.DeletionTimestamp, err)
	}
}
