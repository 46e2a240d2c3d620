package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// claimKey is where a management cluster keeps which fleet it belongs to: a ConfigMap that init creates before it installs anything. Of two that
// create it at once the API server lets one win.
var claimKey = kube.Key{Namespace: "fleetctl-system", Name: "fleet"}

// claim is what a management cluster knows of its fleet.
type claim struct {
	// fleet is the identity, name the fleet's name, and cluster the name of the management cluster.
	fleet, name, cluster string
	// url and branch of the fleet repo; url is "" where a folder is served. folder is the one that init was last run in, for people to read.
	url, branch, folder string
	// by is who made it, for people to read.
	by string
	// confirmed says that the identity is in the fleet repo. Until then another run may have brought another one there.
	confirmed bool

	version string // of the object that it was read from
}

// String is whose the management cluster is.
func (c *claim) String() string {
	text := describeFleet(c.name, c.fleet, cmp.Or(c.url, c.folder)) + ", as management cluster " + c.cluster
	if c.by != "" {
		text += ", made by " + c.by
	}
	return text
}

// errNoClaim says that the cluster has the object, and that it is none of ours.
var errNoClaim = errors.New("it does not say which fleet the cluster belongs to")

// readClaim returns nil where the cluster belongs to no fleet yet.
func readClaim(ctx context.Context, client *kube.Client) (*claim, error) {
	object := &corev1.ConfigMap{}
	err := client.Get(ctx, claimKey, object)
	if kube.IsAbsent(err) {
		return nil, nil
	}
	op := "look which fleet the cluster at " + client.Host() + " belongs to"
	if err != nil {
		return nil, diag.Wrap(op, err, "")
	}
	c := &claim{
		fleet: object.Data["fleet"], name: object.Data["fleetName"], cluster: object.Data["managementCluster"],
		url: object.Data["repository"], branch: object.Data["branch"], folder: object.Data["folder"], by: object.Data["madeBy"],
		confirmed: object.Data["confirmed"] == "true", version: object.ResourceVersion,
	}
	if !fleetrepo.ValidIdentity(c.fleet) || c.cluster == "" {
		return nil, diag.Wrap(op, fmt.Errorf("ConfigMap %s: %w", claimKey, errNoClaim),
			"if you know that it is yours, delete the ConfigMap and run `fleetctl init`")
	}
	return c, nil
}

func (c *claim) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claimKey.Namespace, Name: claimKey.Name, ResourceVersion: c.version,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string]string{
			"fleet": c.fleet, "fleetName": c.name, "managementCluster": c.cluster, "repository": c.url, "branch": c.branch, "folder": c.folder,
			"madeBy": c.by, "confirmed": fmt.Sprint(c.confirmed),
		},
	}
}

// create makes the claim; apierrors.IsAlreadyExists where somebody was faster.
func (c *claim) create(ctx context.Context, client *kube.Client) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: claimKey.Namespace}}
	if err := client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace %s: %w", claimKey.Namespace, err)
	}
	c.version = ""
	return client.Create(ctx, c.object())
}

// update writes the claim over the version that it was read from; apierrors.IsConflict where it has changed since.
func (c *claim) update(ctx context.Context, client *kube.Client) error {
	return client.Update(ctx, c.object())
}

// somebody is who runs this program, as others on the machine know them.
func somebody() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf("user %d on %s", os.Getuid(), host)
	}
	return u.Username + " on " + host
}
