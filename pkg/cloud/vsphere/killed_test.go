package vsphere

import (
	"context"
	"crypto/tls"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// cable is a connection to the vCenter that is cut after a number of requests, as by the end of the process: nothing gets through any more.
type cable struct {
	*Account

	left atomic.Int64
	cut  atomic.Pointer[context.CancelFunc]
}

func (v *vcenter) cable() *cable {
	v.t.Helper()
	l := &cable{}
	l.left.Store(math.MaxInt64)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", v.server.URL.Host, v.server.URL.Host
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.left.Add(-1) < 0 {
			if cut := l.cut.Load(); cut != nil {
				(*cut)()
			}
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	v.t.Cleanup(server.Close)
	var err error
	l.Account, err = New(server.Listener.Addr().String(), v.login.Username(), password, soap.ThumbprintSHA1(server.Certificate()))
	if err != nil {
		v.t.Fatal(err)
	}
	return l
}

// deleteUntilCut lists and deletes the fleet's resources as fleetctl orphans does. The connection is cut after a number of requests for
// deletions. It returns false if that was not needed.
func (l *cable) deleteUntilCut(t *testing.T, requests int64) (wasCut bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.left.Store(math.MaxInt64)
	found := l.Find(ctx, fleet, []string{"shop"})
	if len(found.Problems) > 0 {
		t.Fatal(found.Problems)
	}
	ours := slices.DeleteFunc(found.Resources, func(r cloud.Resource) bool { return r.Fleet != fleet })
	l.cut.Store(&cancel)
	l.left.Store(requests)
	for _, stage := range l.Stages(ours) {
		for _, r := range stage {
			if err := l.Delete(ctx, r); err != nil {
				if l.left.Load() >= 0 {
					t.Fatalf("%s: %v", r.ID, err)
				}
				return true
			}
		}
	}
	return false
}

// A deletion that is killed between any two requests goes on when it is run again: what is ours goes, and nothing else does.
func TestDeleteKilledAnywhere(t *testing.T) {
	v := newVCenter(t, 1)
	first, second := v.clone("", "shop-x7k2p", made(fleet, "shop")), v.clone("k8s", "shop-general-x7k2p-9fh2k", made(fleet, "shop"))
	v.attach(first, "[LocalDS_0] volumes/pvc-1.vmdk")
	v.clone("", "shop-zzzzz", made(other, "shop"))
	v.clone("", "alive-x7k2p", made(fleet+"0", "alive"))
	v.module(first, second)
	l := v.cable()
	kills := int64(0)
	for l.deleteUntilCut(t, kills) {
		if kills++; kills > 500 {
			t.Fatal("it never ends")
		}
		if !v.hasFile("volumes/pvc-1.vmdk") {
			t.Fatalf("after %d requests, a volume went with its machine", kills)
		}
	}
	left := slices.DeleteFunc(v.names(), func(name string) bool { return strings.HasPrefix(name, "DC0_") })
	if !slices.Equal(left, []string{"alive-x7k2p", "shop-zzzzz"}) || kills < 6 {
		t.Errorf("left after %d kills: %v", kills, left)
	}
	if !v.hasFile("volumes/pvc-1.vmdk") || v.hasFile("shop-x7k2p/shop-x7k2p.vmx") {
		t.Error("the volume is gone, or the machine's own files stay")
	}
	t.Logf("%d kills", kills)
}
