// Package vsphere asks a vCenter what it holds of a fleet's clusters, and deletes it.
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

// The variables that open a vCenter. The provider reads user and password, too; clusterctl's templates for vSphere have all four.
const (
	UserVariable       = "VSPHERE_USERNAME"
	PasswordVariable   = "VSPHERE_PASSWORD"
	ServerVariable     = "VSPHERE_SERVER"
	ThumbprintVariable = "VSPHERE_TLS_THUMBPRINT"
)

// Account is a vCenter as a user sees it.
type Account struct {
	server string // HOST or HOST:PORT
	url    *url.URL
	user   *url.Userinfo
	// password is what no error may repeat: a vCenter could quote the request in its answer.
	password string
	// thumbprint of its certificate; "" where this machine trusts the authority that has signed it.
	thumbprint string
	// refs are what Find has seen, by kind and id.
	refs map[[2]string]types.ManagedObjectReference
}

var _ cloud.Account = (*Account)(nil)

// maxAnswer is a variable, so that tests need not send that much.
var maxAnswer = cloud.MaxAnswer

// New is the vCenter at server, HOST or HOST:PORT, for a user. The thumbprint may be in small letters, which govmomi would not take for the
// same. Nobody is asked yet. No error has the password in it.
func New(server, user, password, thumbprint string) (*Account, error) {
	u, err := url.Parse("https://" + server + "/sdk")
	if err != nil || u.Host != server || u.Hostname() == "" {
		return nil, diag.Errorf("export "+ServerVariable+"=vcenter.example.com",
			"%q is no address of a vCenter: it is HOST or HOST:PORT, without https:// and a path", server)
	}
	return &Account{
		server: server, url: u, user: url.UserPassword(user, password), password: password, thumbprint: strings.ToUpper(thumbprint),
	}, nil
}

// Key tells accounts apart: a user has to see all of a vCenter, so that one is enough.
func (a *Account) Key() string { return a.server }

// Cloud is the provider's name.
func (a *Account) Cloud() string { return "vsphere" }

// answerTimeout bounds how long one request of Find may take; some of govmomi's have no context.
const answerTimeout = 3 * time.Minute

// open logs in. No request takes longer than most. The caller has to call the function that logs out.
func (a *Account) open(ctx context.Context, most time.Duration) (*vim25.Client, func(), error) {
	transport := soap.NewClient(a.url, false)
	transport.Timeout = most
	transport.SetThumbprint(a.url.Host, a.thumbprint)
	transport.UserAgent = "fleetctl"
	a.guard(transport)
	client, err := vim25.NewClient(ctx, transport)
	if err != nil {
		return nil, nil, err
	}
	manager := session.NewManager(client)
	if err := manager.Login(ctx, a.user); err != nil {
		return nil, nil, err
	}
	return client, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = manager.Logout(ctx) // a session that stays ends by itself
	}, nil
}

// guard keeps the requests of a client, the password in them, at the vCenter: Go's client would send the body of a login wherever an
// answer redirects it to. It bounds the answers, too. Every client that govmomi derives from another one has to be guarded again.
func (a *Account) guard(client *soap.Client) {
	client.Transport = contact.Bound(sameorigin.Bind(client.DefaultTransport(), a.url), maxAnswer)
}

// openREST logs in to the API that has modules of clusters. ok is false where the vCenter has no such API.
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

// Find asks the vCenter. What it does not say is a problem, and no error.
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
			Region: a.server, Text: "the user " + a.user.Username() + " sees no datacenter, so that it lists nothing says nothing",
			Hint: "give the user the role Read-only on the vCenter, with all that is below it",
		})
	}
	slices.SortFunc(found.Resources, func(x, y cloud.Resource) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Kind), slices.Index(order, y.Kind)), cmp.Compare(x.ID, y.ID))
	})
	return found
}

// names are those of clusters, the longest first: a name may begin with another one.
func names(clusters []string) []string {
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(x, y string) int { return cmp.Or(cmp.Compare(len(y), len(x)), strings.Compare(x, y)) })
	return sorted
}
