// Package vsphere lists and deletes the resources of a fleet's clusters in a vCenter.
package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// The variables with the address and the credentials of a vCenter. The provider also reads user and password; clusterctl's templates for
// vSphere have all four.
const (
	UserVariable       = "VSPHERE_USERNAME"
	PasswordVariable   = "VSPHERE_PASSWORD"
	ServerVariable     = "VSPHERE_SERVER"
	ThumbprintVariable = "VSPHERE_TLS_THUMBPRINT"
)

// Account is a user's access to a vCenter.
type Account struct {
	server string // HOST or HOST:PORT
	url    *url.URL
	user   *url.Userinfo
	// password must not be in an error. A vCenter could quote the request in its answer.
	password string
	// thumbprint is the fingerprint of the vCenter's certificate. It is "" if this machine trusts the issuer.
	thumbprint string
	// refs are the references of the objects that Find has listed, by kind and id.
	refs map[[2]string]types.ManagedObjectReference
	// slots has room for the deletions at once, none of which waits for another one.
	slots chan struct{}
}

var _ cloud.Account = (*Account)(nil)

// maxAnswer and mostPages are variables, so that tests need not send that much.
var (
	maxAnswer = cloud.MaxAnswer
	mostPages = cloud.MostPages
)

// New returns a user's access to the vCenter at server, HOST or HOST:PORT. It accepts a thumbprint in lower case, which govmomi does not.
// It sends no request. No error contains the password.
func New(server, user, password, thumbprint string) (*Account, error) {
	u, err := url.Parse("https://" + server + "/sdk")
	if err != nil || u.Host != server || u.Hostname() == "" {
		return nil, diag.Errorf("export "+ServerVariable+"=vcenter.example.com",
			"%q is not the address of a vCenter: write HOST or HOST:PORT, without https:// and a path", server)
	}
	return &Account{
		server: server, url: u, user: url.UserPassword(user, password), password: password, thumbprint: strings.ToUpper(thumbprint),
		slots: make(chan struct{}, cloud.AtOnce),
	}, nil
}

// Key identifies the vCenter. One user is enough for each vCenter, because the user must see all of it.
func (a *Account) Key() string { return a.server }

// Cloud returns the name of the provider.
func (a *Account) Cloud() string { return "vsphere" }

// answerTimeout bounds one request of Find, because some requests of govmomi have no context.
const answerTimeout = 3 * time.Minute

// open logs in. Each request takes at most most. The caller must call the returned function, which logs out.
func (a *Account) open(ctx context.Context, most time.Duration) (*vim25.Client, func(), error) {
	transport := soap.NewClient(a.url, false)
	transport.Timeout = most
	transport.SetThumbprint(a.url.Host, a.thumbprint)
	transport.UserAgent = "fleetctl"
	a.guard(transport)
	transport.Namespace, transport.Version = "urn:"+vim25.Namespace, vim25.Version
	client, err := vim25.NewClient(ctx, &answers{transport, mostPages})
	if err != nil {
		return nil, nil, err
	}
	client.Client = transport
	manager := session.NewManager(client)
	if err := manager.Login(ctx, a.user); err != nil {
		return nil, nil, err
	}
	return client, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = manager.Logout(ctx) // an abandoned session ends by itself
	}, nil
}

// guard sends the requests of a client only to the vCenter, and bounds the answers. The requests contain the password, and Go's client
// would send the body of a login to the target of a redirect. Every client that govmomi derives from another one must be guarded again.
func (a *Account) guard(client *soap.Client) {
	client.Transport = contact.Bound(sameorigin.Bind(client.DefaultTransport(), a.url), maxAnswer)
}

// openREST logs in to the API of cluster modules. ok is false if the vCenter lacks this API.
func (a *Account) openREST(ctx context.Context, client *vim25.Client) (api *rest.Client, closed func(), ok bool, err error) {
	api = rest.NewClient(client)
	a.guard(api.Client)
	err = api.Login(ctx, a.user)
	switch {
	case isAbsent(err):
		return nil, nil, false, nil
	case err != nil:
		return nil, nil, false, err
	}
	return api, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = api.Logout(ctx)
	}, true, nil
}

// Find searches the vCenter. Failed requests become problems of the result.
func (a *Account) Find(ctx context.Context, fleet string, clusters []string) cloud.Found {
	found := cloud.Found{Regions: []string{a.server}}
	problem := func(what string, err error) {
		text := fmt.Sprintf("%s: %v", what, a.short(err))
		found.Problems = append(found.Problems, cloud.Problem{Region: a.server, Text: text, Hint: a.hint(err)})
	}
	client, logout, err := a.open(ctx, answerTimeout)
	if err != nil {
		problem("log in as "+a.user.Username(), err)
		return found
	}
	defer logout()
	c := &collector{
		account: a, fleet: fleet, client: client, known: names(clusters),
		refs: map[[2]string]types.ManagedObjectReference{},
	}
	for _, look := range []struct {
		what string
		list func(context.Context) error
	}{
		{"list its inventory", c.inventory},
		{"list its virtual machines", c.machines},
		{"list modules of its clusters", func(ctx context.Context) error {
			api, logout, there, err := a.openREST(ctx, client)
			if err != nil || !there {
				return err
			}
			defer logout()
			return c.modules(ctx, api)
		}},
		{"list its container volumes", c.volumes},
	} {
		if err := look.list(ctx); err != nil {
			problem(look.what, err)
		}
	}
	a.refs = c.refs
	found.Resources = c.resources
	for _, text := range c.unread {
		found.Problems = append(found.Problems, cloud.Problem{
			Region: a.server, Text: text, Hint: "reconnect its host, or give the user the privilege System.Read on it",
		})
	}
	if c.blind {
		found.Problems = append(found.Problems, cloud.Problem{
			Region: a.server, Text: "the user " + a.user.Username() + " sees no datacenter, so the list of resources is not complete",
			Hint: "give the user the role Read-only on the vCenter, with all that is below it",
		})
	}
	slices.SortFunc(found.Resources, func(x, y cloud.Resource) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Kind), slices.Index(order, y.Kind)), cmp.Compare(x.ID, y.ID))
	})
	return found
}

// names returns the names of clusters, the longest first, because a name may begin with another name.
func names(clusters []string) []string {
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(x, y string) int { return cmp.Or(cmp.Compare(len(y), len(x)), strings.Compare(x, y)) })
	return sorted
}
