package vsphere

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/cns"
	_ "github.com/vmware/govmomi/cns/simulator"
	cnstypes "github.com/vmware/govmomi/cns/types"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/cluster"
	_ "github.com/vmware/govmomi/vapi/cluster/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	_ "github.com/vmware/govmomi/vapi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cloud"
)

const (
	fleet    = "11111111-1111-1111-1111-111111111111"
	other    = "22222222-2222-2222-2222-222222222222"
	password = "canary of a password"
)

// vcenter is govmomi's simulator of a vCenter, with its own administrator.
type vcenter struct {
	t      *testing.T
	server *simulator.Server
	client *govmomi.Client
	finder *find.Finder
	cert   string
	login  *url.Userinfo
}

func newVCenter(t *testing.T, datacenters int) *vcenter {
	t.Helper()
	return newVCenterWith(t, datacenters, true)
}

// newVCenterWith starts a vCenter. all tells whether it has the APIs of modules and volumes.
func newVCenterWith(t *testing.T, datacenters int, all bool) *vcenter {
	t.Helper()
	model := simulator.VPX()
	model.Datacenter = datacenters
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	login := url.UserPassword("fleet@vsphere.local", password)
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: login}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = all
	v := &vcenter{t: t, server: model.Service.NewServer(), login: login}
	t.Cleanup(func() {
		v.server.Close()
		model.Remove()
	})
	v.cert = soap.ThumbprintSHA1(v.server.Certificate())
	var err error
	if v.client, err = govmomi.NewClient(t.Context(), v.server.URL, true); err != nil {
		t.Fatal(err)
	}
	v.finder = find.NewFinder(v.client.Client)
	if datacenters == 0 {
		return v
	}
	dc, err := v.finder.DefaultDatacenter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.finder.SetDatacenter(dc)
	return v
}

// account returns a user's access to the vCenter.
func (v *vcenter) account(secret, cert string) *Account {
	v.t.Helper()
	a, err := New(v.server.URL.Host, v.login.Username(), secret, cert)
	if err != nil {
		v.t.Fatal(err)
	}
	return a
}

func (v *vcenter) vm(path string) *object.VirtualMachine {
	v.t.Helper()
	vm, err := v.finder.VirtualMachine(v.t.Context(), path)
	if err != nil {
		v.t.Fatal(err)
	}
	return vm
}

// clone makes a machine in a folder below /DC0/vm as the provider does, with the provider's keys in its configuration.
func (v *vcenter) clone(folder, name string, config map[string]string) *object.VirtualMachine {
	v.t.Helper()
	ctx := v.t.Context()
	in, err := v.finder.Folder(ctx, "/DC0/vm/"+folder)
	if err != nil {
		root, err := v.finder.Folder(ctx, "/DC0/vm")
		if err != nil {
			v.t.Fatal(err)
		}
		if in, err = root.CreateFolder(ctx, folder); err != nil {
			v.t.Fatal(err)
		}
	}
	pool, err := v.finder.ResourcePool(ctx, "/DC0/host/DC0_C0/Resources")
	if err != nil {
		v.t.Fatal(err)
	}
	ref := pool.Reference()
	spec := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &ref}}
	if err := done(ctx)(v.vm("/DC0/vm/DC0_C0_RP0_VM0").Clone(ctx, in, name, spec)); err != nil {
		v.t.Fatal(err)
	}
	vm := v.vm("/DC0/vm/" + strings.TrimPrefix(folder+"/"+name, "/"))
	var given types.VirtualMachineConfigSpec // the simulator ignores the configuration of a clone
	for key, value := range config {
		given.ExtraConfig = append(given.ExtraConfig, &types.OptionValue{Key: key, Value: value})
	}
	if err := done(ctx)(vm.Reconfigure(ctx, given)); err != nil {
		v.t.Fatal(err)
	}
	if err := done(ctx)(vm.PowerOn(ctx)); err != nil {
		v.t.Fatal(err)
	}
	return vm
}

func (v *vcenter) off(vm *object.VirtualMachine) *object.VirtualMachine {
	v.t.Helper()
	if err := done(v.t.Context())(vm.PowerOff(v.t.Context())); err != nil {
		v.t.Fatal(err)
	}
	return vm
}

// made returns the configuration that the provider gives each machine. With marks, it also has the keys of the fleet and the cluster.
func made(marks ...string) map[string]string {
	config := map[string]string{"guestinfo.userdata": "a secret", "guestinfo.userdata.encoding": "base64"}
	if len(marks) > 0 {
		config[v1alpha1.FleetKey], config[v1alpha1.ClusterKey] = marks[0], marks[1]
	}
	return config
}

func (v *vcenter) module(members ...*object.VirtualMachine) string {
	v.t.Helper()
	ctx := v.t.Context()
	api := rest.NewClient(v.client.Client)
	if err := api.Login(ctx, v.login); err != nil {
		v.t.Fatal(err)
	}
	manager := cluster.NewManager(api)
	compute, err := v.finder.ClusterComputeResource(ctx, "/DC0/host/DC0_C0")
	if err != nil {
		v.t.Fatal(err)
	}
	id, err := manager.CreateModule(ctx, compute)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, m := range members {
		if _, err := manager.AddModuleMembers(ctx, id, m); err != nil {
			v.t.Fatal(err)
		}
	}
	return id
}

func (v *vcenter) volume(name, clusterID string) string {
	v.t.Helper()
	ctx := v.t.Context()
	store, err := v.finder.DefaultDatastore(ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	api, err := cns.NewClient(ctx, v.client.Client)
	if err != nil {
		v.t.Fatal(err)
	}
	task, err := api.CreateVolume(ctx, []cnstypes.CnsVolumeCreateSpec{{
		Name: name, VolumeType: string(cnstypes.CnsVolumeTypeBlock), Datastores: []types.ManagedObjectReference{store.Reference()},
		Metadata: cnstypes.CnsVolumeMetadata{ContainerCluster: cnstypes.CnsContainerCluster{
			ClusterType: "KUBERNETES",
			ClusterId:   clusterID, VSphereUser: "csi",
		}},
		BackingObjectDetails: &cnstypes.CnsBlockBackingDetails{CnsBackingObjectDetails: cnstypes.CnsBackingObjectDetails{CapacityInMb: 1024}},
	}})
	if err != nil {
		v.t.Fatal(err)
	}
	info, err := cns.GetTaskInfo(ctx, task)
	if err != nil {
		v.t.Fatal(err)
	}
	result, err := cns.GetTaskResult(ctx, info)
	if err != nil {
		v.t.Fatal(err)
	}
	return result.GetCnsVolumeOperationResult().VolumeId.Id
}

func (v *vcenter) names() []string {
	v.t.Helper()
	all, err := v.finder.VirtualMachineList(v.t.Context(), "/DC0/vm/...")
	if err != nil {
		v.t.Fatal(err)
	}
	var out []string
	for _, vm := range all {
		out = append(out, vm.Name())
	}
	slices.Sort(out)
	return out
}

// line describes a resource and its owner.
func line(r cloud.Resource) string {
	return strings.TrimSpace(strings.Join([]string{r.Kind, r.ID, "of", r.Cluster, r.Fleet, strings.Join(r.Users, ",")}, " "))
}

func TestFind(t *testing.T) {
	v := newVCenter(t, 1)
	strangers := v.names()
	first := v.clone("", "shop-x7k2p", made(fleet, "shop"))
	second := v.clone("k8s", "shop-general-x7k2p-9fh2k", made(fleet, "shop"))
	foreign := v.clone("k8s", "shop-zzzzz", made(other, "shop"))
	v.clone("", "old-bcdfg", made())                 // of a cluster in the repo, without marks
	v.clone("", "gone-md-0-bcdfg-hjklm", made())     // of an unknown cluster
	v.clone("", "gone-xwvtz", made())                // its control plane
	v.clone("", "web-server", made())                // somebody's own, with cloud-init
	v.clone("plant", "node-1", made())               // its folder has the name of a cluster
	v.clone("", "old-database", map[string]string{}) // it has only a name
	if err := v.off(v.clone("", "old-template", made())).MarkAsTemplate(t.Context()); err != nil {
		t.Fatal(err)
	}
	own, mixed := v.module(first, second), v.module(first, foreign)
	v.module(v.vm("/DC0/vm/DC0_C0_RP0_VM1"))
	v.module()
	data, scoped := v.volume("pvc-1", "shop"), v.volume("pvc-2", "shop/shop")
	v.volume("pvc-3", "openshift")

	a := v.account(password, v.cert)
	found := a.Find(t.Context(), fleet, []string{"old", "plant"})
	if len(found.Problems) > 0 {
		t.Fatalf("problems: %+v", found.Problems)
	}
	var got []string
	for _, r := range found.Resources {
		got = append(got, line(r))
		if r.Region != v.server.URL.Host || r.Kind == kindMachine && (r.Created == nil || r.Cost != cloud.CostHourly) {
			t.Errorf("%+v", r)
		}
	}
	want := []string{
		"cluster-module " + own + " of shop " + fleet,
		"cluster-module " + mixed + " of shop " + fleet + " shop",
		"container-volume " + data + " of shop",
		"container-volume " + scoped + " of shop",
		"virtual-machine /DC0/vm/gone-md-0-bcdfg-hjklm of gone",
		"virtual-machine /DC0/vm/gone-xwvtz of gone",
		"virtual-machine /DC0/vm/k8s/shop-general-x7k2p-9fh2k of shop " + fleet,
		"virtual-machine /DC0/vm/k8s/shop-zzzzz of shop " + other,
		"virtual-machine /DC0/vm/old-bcdfg of old",
		"virtual-machine /DC0/vm/plant/node-1 of plant",
		"virtual-machine /DC0/vm/shop-x7k2p of shop " + fleet,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range strangers {
		if slices.ContainsFunc(found.Resources, func(r cloud.Resource) bool { return r.Name == name }) {
			t.Errorf("%s is a stranger's", name)
		}
	}
}

// An unanswered request, or an incomplete answer, is always a problem. It is never only an empty list.
func TestFindNothingIsNoAnswer(t *testing.T) {
	v := newVCenter(t, 1)
	v.clone("", "shop-x7k2p", made(fleet, "shop"))
	empty := newVCenter(t, 0)
	valid, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		account    *Account
		text, hint string
	}{
		"wrong password":    {v.account("wrong", v.cert), "log in as fleet@vsphere.local: ", PasswordVariable},
		"unknown authority": {v.account(password, ""), "certificate", ThumbprintVariable},
		"another name":      {mustNew(t, withCertificate(t, "192.0.2.7", valid)), "127.0.0.1", ThumbprintVariable},
		"expired":           {mustNew(t, withCertificate(t, "127.0.0.1", past)), "expired", "renew the certificate"},
		"wrong fingerprint": {v.account(password, strings.Repeat("00:", 19)+"00"), "thumbprint does not match", "renewed"},
		"nobody there":      {mustNew(t, "127.0.0.1:1"), "connect", ""},
		"no such vCenter":   {mustNew(t, "vcenter.invalid"), "vcenter.invalid", ""},
		"sees nothing":      {empty.account(password, empty.cert), "sees no datacenter", "Read-only"},
	} {
		found := test.account.Find(t.Context(), fleet, nil)
		if len(found.Problems) == 0 || !strings.Contains(found.Problems[0].Text, test.text) ||
			!strings.Contains(found.Problems[0].Hint, test.hint) {
			t.Errorf("%s: %+v", name, found.Problems)
		}
		for _, p := range found.Problems {
			if strings.Contains(p.Text+p.Hint, "canary") {
				t.Errorf("%s: the password is in %+v", name, p)
			}
		}
	}
}

// withCertificate returns the address of a server whose certificate is for this address and expires at until.
func withCertificate(t *testing.T, address string, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-24 * time.Hour), NotAfter: until, IPAddresses: []net.IP{net.ParseIP(address)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestFingerprintInSmallLetters(t *testing.T) {
	v := newVCenter(t, 1)
	if found := v.account(password, strings.ToLower(v.cert)).Find(t.Context(), fleet, nil); len(found.Problems) > 0 {
		t.Errorf("%+v", found.Problems)
	}
}

func mustNew(t *testing.T, server string) *Account {
	t.Helper()
	a, err := New(server, "fleet", password, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An old vCenter has neither cluster modules nor container volumes. That is no problem.
func TestFindWithoutModulesAndVolumes(t *testing.T) {
	v := newVCenterWith(t, 1, false)
	v.clone("", "shop-x7k2p", made(fleet, "shop"))
	found := v.account(password, v.cert).Find(t.Context(), fleet, nil)
	if len(found.Problems) > 0 || len(found.Resources) != 1 {
		t.Errorf("%+v", found)
	}
}

func TestNew(t *testing.T) {
	for _, server := range []string{"", "https://vcenter.example.com", "vcenter.example.com/sdk", "a b", "user@vcenter.example.com", ":443"} {
		if _, err := New(server, "fleet", password, ""); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", server, err)
		}
	}
	if a := mustNew(t, "vcenter.example.com:8443"); a.Key() != "vcenter.example.com:8443" {
		t.Error(a.Key())
	}
}
