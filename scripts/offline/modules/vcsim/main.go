// Program vcsim is a simulated vCenter: govmomi's simulator on a free port, with an inventory to clone machines from, and what its machines
// look like from inside.
//
// The first line on standard output is JSON: where it answers, and what there is. It ends when its standard input does, so that it never
// outlives the test that started it, however that ends. What the test asks beside vCenter's own API:
//
//	GET /left      what there is apart from what the inventory began with
//	GET /strangers makes machines that are not the fleet's: of another fleet, and of somebody whose machine could be taken for one of shop's
//	GET /machines  the machines that are there and were, each with what it finds when it boots: it gets an address once it runs
//	GET /logins    how often each user has logged in
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/object"
	_ "github.com/vmware/govmomi/pbm/simulator" // storage policies
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator" // the REST API, tags and modules of clusters in it
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// told is the first line.
type told struct {
	// URL answers the test; Server is vCenter, HOST:PORT, with the thumbprint of its certificate.
	URL        string `json:"url"`
	Server     string `json:"server"`
	Thumbprint string `json:"thumbprint"`
	Username   string `json:"username"`
	Password   string `json:"password"`
	// Second is a user beside that one, who may do the same.
	Second struct {
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"second"`
	// Endpoint is an address that nobody has, for the API server of a cluster. SecondEndpoint is another one.
	Endpoint       string `json:"endpoint"`
	SecondEndpoint string `json:"secondEndpoint"`
}

func run() error {
	model := simulator.VPX()
	model.Host, model.Cluster, model.Machine = 1, 0, 1 // /DC0/vm/DC0_H0_VM0 is what machines are cloned from
	defer model.Remove()
	if err := model.Create(); err != nil {
		return err
	}
	user, second := url.UserPassword("fleet", rand.Text()), url.UserPassword("second", rand.Text())
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: user}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	s := &site{
		machines: map[string]*machine{}, given: map[string][]types.BaseOptionValue{},
		users: map[string]string{}, logins: map[string]int{},
	}
	for _, each := range []*url.Userinfo{user, second} {
		s.users[each.Username()], _ = each.Password()
	}
	model.Map().Handler = s.watch
	model.Map().SessionManager().ValidLogin = s.admits
	server := model.Service.NewServer() // it ends with the process: to close it takes as long as somebody waits for news there
	var endpoints [2]string
	var err error
	if s.addresses, endpoints, err = network(); err != nil {
		return err
	}
	ctx := context.Background()
	if s.client, err = govmomi.NewClient(ctx, server.URL, true); err != nil {
		return err
	}
	if s.fresh, err = s.inventory(ctx); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /left", answer(s.left))
	mux.HandleFunc("GET /machines", answer(s.all))
	mux.HandleFunc("GET /strangers", answer(s.strangers))
	mux.HandleFunc("GET /logins", answer(s.loggedIn))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, mux) }()
	t := told{
		URL: "http://" + listener.Addr().String(), Server: server.URL.Host, Thumbprint: thumbprint(server.Certificate().Raw),
		Username: user.Username(), Password: s.users[user.Username()], Endpoint: endpoints[0], SecondEndpoint: endpoints[1],
	}
	t.Second.Username, t.Second.Password = second.Username(), s.users[second.Username()]
	err = json.NewEncoder(os.Stdout).Encode(t)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return err
}

func thumbprint(certificate []byte) string {
	var parts []string
	for _, b := range sha1.Sum(certificate) {
		parts = append(parts, fmt.Sprintf("%02X", b))
	}
	return strings.Join(parts, ":")
}

// network is a part of the loopback network that no other simulator on this machine uses: addresses for machines, and two for API servers.
func network() (next func() string, endpoints [2]string, err error) {
	for range 50 {
		var random [2]byte
		_, _ = rand.Read(random[:])
		prefix := fmt.Sprintf("127.%d.%d.", 1+random[0]%62, random[1]) // below those of the simulated AWS
		if _, err = net.Listen("tcp", prefix+"254:6443"); err != nil { // held until the end
			continue
		}
		n := 0
		return func() string {
			n++
			return fmt.Sprintf("%s%d", prefix, n)
		}, [2]string{prefix + "253", prefix + "252"}, nil
	}
	return nil, endpoints, fmt.Errorf("find addresses of loopback that nobody has: %w", err)
}

// site is what there is.
type site struct {
	client    *govmomi.Client
	addresses func() string
	fresh     []string

	// users have their passwords.
	users map[string]string

	mu       sync.Mutex
	machines map[string]*machine // also those that are gone
	given    map[string][]types.BaseOptionValue

	// counting is for logins alone: who asks for machines, which takes mu, may have to log in for that.
	counting sync.Mutex
	logins   map[string]int
}

// admits tells whether somebody may log in, and counts it.
func (s *site) admits(login *types.Login) bool {
	password, known := s.users[login.UserName]
	if !known || password != login.Password {
		return false
	}
	s.counting.Lock()
	defer s.counting.Unlock()
	s.logins[login.UserName]++
	return true
}

func (s *site) loggedIn(context.Context) (map[string]int, error) {
	s.counting.Lock()
	defer s.counting.Unlock()
	return maps.Clone(s.logins), nil
}

// watch remembers by its name what a machine is given when it is cloned: a real vCenter keeps that with the machine, and the simulator
// forgets it.
func (s *site) watch(_ *simulator.Context, call *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	if clone, is := call.Body.(*types.CloneVM_Task); is && clone.Spec.Config != nil {
		s.counting.Lock()
		defer s.counting.Unlock()
		s.given[clone.Name] = clone.Spec.Config.ExtraConfig
	}
	return nil, nil // it does the rest
}

// machine is one as the test sees it; those of the simulated AWS have the same fields.
type machine struct {
	ID         string `json:"id"`
	ProviderID string `json:"providerID"`
	Hostname   string `json:"hostname"`
	Type       string `json:"type"`
	Running    bool   `json:"running"`
	Address    string `json:"address,omitempty"`
	UserData   string `json:"userData,omitempty"`
}

func answer[T any](ask func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		said, err := ask(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(said)
	}
}

// look reads objects of a kind with some of their properties, wherever they are.
func look[T any](ctx context.Context, c *govmomi.Client, kind string, properties ...string) ([]T, error) {
	v, err := view.NewManager(c.Client).CreateContainerView(ctx, c.ServiceContent.RootFolder, []string{kind}, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.Destroy(ctx) }()
	var out []T
	return out, v.Retrieve(ctx, []string{kind}, properties, &out)
}

// inventory is all that a provider may make, as KIND/NAME.
func (s *site) inventory(ctx context.Context) ([]string, error) {
	var out []string
	vms, err := look[mo.VirtualMachine](ctx, s.client, "VirtualMachine", "name")
	if err != nil {
		return nil, err
	}
	for _, vm := range vms {
		out = append(out, "machine/"+vm.Name)
	}
	folders, err := look[mo.Folder](ctx, s.client, "Folder", "name")
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		out = append(out, "folder/"+f.Name)
	}
	pools, err := look[mo.ResourcePool](ctx, s.client, "ResourcePool", "name")
	if err != nil {
		return nil, err
	}
	for _, p := range pools {
		out = append(out, "resource-pool/"+p.Name)
	}
	slices.Sort(out)
	return out, nil
}

func (s *site) left(ctx context.Context) ([]string, error) {
	now, err := s.inventory(ctx)
	out := slices.DeleteFunc(now, func(one string) bool { return slices.Contains(s.fresh, one) })
	return append([]string{}, out...), err
}

// all are the machines that a provider has made. One that runs for the first time gets an address, as a network with DHCP would give it.
func (s *site) all(ctx context.Context) ([]*machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	vms, err := look[mo.VirtualMachine](ctx, s.client, "VirtualMachine", "name", "config", "runtime.powerState")
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, vm := range vms {
		if vm.Config == nil || slices.Contains(s.fresh, "machine/"+vm.Name) {
			continue
		}
		there[vm.Config.Uuid] = true
		if err := s.see(ctx, vm); err != nil {
			return nil, fmt.Errorf("%s: %w", vm.Name, err)
		}
	}
	out := []*machine{}
	for id, m := range s.machines {
		m.Running = m.Running && there[id]
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *machine) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (s *site) see(ctx context.Context, vm mo.VirtualMachine) error {
	id := vm.Config.Uuid
	on := vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
	if m := s.machines[id]; m != nil {
		m.Running = on
		return nil
	}
	data, err := userData(s.given[vm.Name])
	if err != nil || data == "" || !on {
		return err
	}
	m := &machine{
		ID: id, ProviderID: "vsphere://" + id, Hostname: vm.Name, Type: fmt.Sprintf("vsphere-%dcpu", vm.Config.Hardware.NumCPU), Running: true,
		Address: s.addresses(), UserData: data,
	}
	// An address of loopback is none that the provider takes for a machine's.
	_, last, _ := strings.Cut(m.Address, "127.")
	config := []types.BaseOptionValue{&types.OptionValue{Key: "SET.guest.ipAddress", Value: "10." + last}}
	for _, each := range s.given[vm.Name] { // what tells whose it is stays with it, as in a real vCenter
		if strings.HasPrefix(each.GetOptionValue().Key, "fleetctl.") {
			config = append(config, each)
		}
	}
	task, err := object.NewVirtualMachine(s.client.Client, vm.Self).Reconfigure(ctx, types.VirtualMachineConfigSpec{ExtraConfig: config})
	if err == nil {
		err = task.Wait(ctx)
	}
	if err == nil {
		s.machines[id] = m
	}
	return err
}

// userData is what cloud-init finds there; "" while there is nothing.
func userData(config []types.BaseOptionValue) (string, error) {
	value, encoding := "", ""
	for _, each := range config {
		switch option := each.GetOptionValue(); option.Key {
		case "guestinfo.userdata":
			value, _ = option.Value.(string)
		case "guestinfo.userdata.encoding":
			encoding, _ = option.Value.(string)
		}
	}
	if value == "" {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || encoding != "gzip+base64" {
		return string(raw), err
	}
	plain, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	raw, err = io.ReadAll(plain)
	return string(raw), errors.Join(err, plain.Close())
}
