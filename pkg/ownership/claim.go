package ownership

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

// ClaimKey is the ConfigMap in which a management cluster stores the fleet that it belongs to. init creates it before it installs anything.
// If two runs create it at once, the API server lets one of them win.
var ClaimKey = kube.Key{Namespace: "fleetctl-system", Name: "fleet"}

// Claim is what a management cluster knows of its fleet.
type Claim struct {
	// Fleet is the identity, Name the fleet's name, and Cluster the name of the management cluster.
	Fleet, Name, Cluster string
	// URL and Branch of the fleet repo; URL is "" for a folder that is served from a machine. Folder is the folder of the last init, for
	// people to read.
	URL, Branch, Folder string
	// By is who made it, for people to read.
	By string
	// Confirmed says that the identity is in the fleet repo. Until then another run may have brought another one there.
	Confirmed bool

	// Version of the object that it was read from; Update writes over no other one.
	Version string
}

// String is whose the management cluster is.
func (c *Claim) String() string {
	text := Describe(c.Name, c.Fleet, cmp.Or(c.URL, c.Folder)) + ", as management cluster " + c.Cluster
	if c.By != "" {
		text += ", made by " + c.By
	}
	return text
}

// ErrNoClaim says that the cluster has such an object, but that fleetctl has not written it.
var ErrNoClaim = errors.New("it does not say which fleet the cluster belongs to")

// ReadClaim reads what the cluster that client reaches knows. It returns nil where the cluster belongs to no fleet yet.
func ReadClaim(ctx context.Context, client *kube.Client) (*Claim, error) {
	object := &corev1.ConfigMap{}
	err := client.Get(ctx, ClaimKey, object)
	if kube.IsAbsent(err) {
		return nil, nil
	}
	op := "look which fleet the cluster at " + client.Host() + " belongs to"
	if err != nil {
		return nil, diag.Wrap(op, err, "")
	}
	c := &Claim{
		Fleet: object.Data["fleet"], Name: object.Data["fleetName"], Cluster: object.Data["managementCluster"],
		URL: object.Data["repository"], Branch: object.Data["branch"], Folder: object.Data["folder"], By: object.Data["madeBy"],
		Confirmed: object.Data["confirmed"] == "true", Version: object.ResourceVersion,
	}
	if !fleetrepo.ValidIdentity(c.Fleet) || c.Cluster == "" {
		return nil, diag.Wrap(op, fmt.Errorf("ConfigMap %s: %w", ClaimKey, ErrNoClaim),
			"if you know that it is yours, delete the ConfigMap and run `fleetctl init`")
	}
	return c, nil
}

func (c *Claim) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ClaimKey.Namespace, Name: ClaimKey.Name, ResourceVersion: c.Version,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string]string{
			"fleet": c.Fleet, "fleetName": c.Name, "managementCluster": c.Cluster, "repository": c.URL, "branch": c.Branch, "folder": c.Folder,
			"madeBy": c.By, "confirmed": fmt.Sprint(c.Confirmed),
		},
	}
}

// Create makes the claim; apierrors.IsAlreadyExists where somebody was faster.
func (c *Claim) Create(ctx context.Context, client *kube.Client) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ClaimKey.Namespace}}
	if err := client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace %s: %w", ClaimKey.Namespace, err)
	}
	c.Version = ""
	return client.Create(ctx, c.object())
}

// Update writes the claim over the version that it was read from; apierrors.IsConflict where it has changed since.
func (c *Claim) Update(ctx context.Context, client *kube.Client) error {
	return client.Update(ctx, c.object())
}

// Somebody is who runs this program, as others on the machine know them.
func Somebody() string {
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
