package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/cns"
	cnstypes "github.com/vmware/govmomi/cns/types"
	"github.com/vmware/govmomi/vapi/cluster"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// The kinds of resources, in the order in which they are deleted. Modules come first, because only the machines of a module tell its owner.
const (
	kindModule  = "cluster-module"
	kindMachine = "virtual-machine"
	kindVolume  = "container-volume"
)

var order = []string{kindModule, kindMachine, kindVolume}

// The keys that are read of a machine's advanced configuration. The provider writes the data for cloud-init or Ignition there. These data
// contain secrets, so only their encoding is read.
var (
	fleetPath   = extra(v1alpha1.FleetKey)
	clusterPath = extra(v1alpha1.ClusterKey)
	madePaths   = []string{
		extra("guestinfo.userdata.encoding"), extra("guestinfo.ignition.config.data.encoding"), extra("guestinfo.metadata.encoding"),
	}
)

func extra(key string) string { return `config.extraConfig["` + key + `"]` }

// ending matches the suffix that Cluster API appends to the name of a machine, and before that to the name of a set of machines.
var ending = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// collector gathers the resources of one vCenter.
type collector struct {
	account *Account
	fleet   string // the identity of the own fleet
	client  *vim25.Client
	known   []string

	entities  map[types.ManagedObjectReference]mo.ManagedEntity // folders and datacenters
	owners    map[types.ManagedObjectReference]cloud.Resource   // machines of clusters
	refs      map[[2]string]types.ManagedObjectReference
	resources []cloud.Resource
	unread    []string
	blind     bool
}

func (c *collector) add(r cloud.Resource, ref types.ManagedObjectReference) {
	r.Region = c.account.server
	c.resources = append(c.resources, r)
	c.refs[[2]string{r.Kind, r.ID}] = ref
}

// all returns the properties of every object of these kinds that the user can see.
func (c *collector) all(ctx context.Context, kinds, properties []string) ([]types.ObjectContent, error) {
	v, err := view.NewManager(c.client).CreateContainerView(ctx, c.client.ServiceContent.RootFolder, kinds, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.Destroy(context.WithoutCancel(ctx)) }() // the end of the session destroys it too
	var content []types.ObjectContent
	return content, v.Retrieve(ctx, kinds, properties, &content)
}

// inventory reads the folders and datacenters, for the paths of machines.
func (c *collector) inventory(ctx context.Context) error {
	content, err := c.all(ctx, []string{"Folder", "Datacenter"}, []string{"name", "parent"})
	if err != nil {
		return err
	}
	c.entities, c.blind = map[types.ManagedObjectReference]mo.ManagedEntity{}, true
	for _, o := range content {
		entity := mo.ManagedEntity{}
		for _, p := range o.PropSet {
			switch value := p.Val.(type) {
			case string:
				entity.Name = value
			case types.ManagedObjectReference:
				entity.Parent = &value
			}
		}
		c.entities[o.Obj] = entity
		c.blind = c.blind && o.Obj.Type != "Datacenter"
	}
	return nil
}

// path returns the inventory path of an object in the form of govc, and the name of the object's folder.
func (c *collector) path(parent *types.ManagedObjectReference, name string) (path, folder string) {
	path = "/" + name
	for first := true; parent != nil; first = false {
		e, ok := c.entities[*parent]
		if !ok {
			break // the root folder has no name in a path
		}
		if first {
			folder = e.Name
		}
		path = "/" + e.Name + path
		parent = e.Parent
	}
	return path, folder
}

// machine has the properties that are read of a virtual machine.
type machine struct {
	name, fleet, cluster string
	parent               *types.ManagedObjectReference
	created              *time.Time
	template, runs, made bool
	// configured means that vCenter knows the machine's configuration. It does not if the host or the datastore is unreachable.
	configured bool
}

var machinePaths = slices.Concat([]string{
	"name", "parent", "config.template", "config.createDate", "runtime.powerState", fleetPath, clusterPath,
}, madePaths)

func machineOf(o types.ObjectContent) machine {
	var m machine
	for _, p := range o.PropSet {
		text := ""
		if option, is := p.Val.(types.OptionValue); is {
			text, _ = option.Value.(string)
		}
		switch p.Name {
		case "name":
			m.name, _ = p.Val.(string)
		case "parent":
			if parent, is := p.Val.(types.ManagedObjectReference); is {
				m.parent = &parent
			}
		case "config.template":
			m.template, m.configured = p.Val.(bool)
		case "config.createDate":
			if created, is := p.Val.(time.Time); is && !created.IsZero() {
				m.created = &created
			}
		case "runtime.powerState":
			m.runs = p.Val == types.VirtualMachinePowerStatePoweredOn
		case fleetPath:
			m.fleet = text
		case clusterPath:
			m.cluster = text
		default:
			m.made = m.made || text != ""
		}
	}
	return m
}

// clusterOf returns the cluster of a machine: from the machine's marks, or else from its name and folder. A name without marks is no proof.
func (c *collector) clusterOf(m machine, folder string) string {
	if m.fleet != "" && m.cluster != "" {
		return m.cluster
	}
	named := ending.MatchString(m.name)
	for _, name := range c.known {
		if (strings.HasPrefix(m.name, name+"-") || folder == name) && (m.made || named) {
			return name
		}
	}
	if !m.made || !named {
		return ""
	}
	base := ending.ReplaceAllString(m.name, "")
	return ending.ReplaceAllString(base, "")
}

func (c *collector) machines(ctx context.Context) error {
	content, err := c.all(ctx, []string{"VirtualMachine"}, machinePaths)
	if err != nil {
		return err
	}
	c.owners = map[types.ManagedObjectReference]cloud.Resource{}
	for _, o := range content {
		m := machineOf(o)
		path, folder := c.path(m.parent, m.name)
		name := c.clusterOf(m, folder)
		switch {
		case m.template:
			continue
		case !m.configured && (name != "" || ending.MatchString(m.name)):
			c.unread = append(c.unread, fmt.Sprintf("the machine %s cannot be read, so its owner is unknown", path))
			continue
		case name == "":
			continue
		}
		if _, taken := c.refs[[2]string{kindMachine, path}]; taken || m.parent == nil {
			path += " (" + o.Obj.Value + ")" // in a vApp
		}
		r := cloud.Resource{Kind: kindMachine, ID: path, Name: m.name, Created: m.created, Cost: cloud.CostStorage, Cluster: name}
		if m.runs {
			r.Cost = cloud.CostHourly
		}
		if m.cluster != "" {
			r.Fleet = m.fleet
		}
		c.owners[o.Obj] = r
		c.add(r, o.Obj)
	}
	c.guesses()
	return nil
}

// guesses corrects guessed names of clusters: the guess for a machine of a pool is CLUSTER-POOL.
func (c *collector) guesses() {
	clusters := map[string]bool{}
	for _, r := range c.resources {
		clusters[r.Cluster] = true
	}
	for i, r := range c.resources {
		if r.Fleet != "" || slices.Contains(c.known, r.Cluster) {
			continue
		}
		for name := r.Cluster; ; {
			end := strings.LastIndex(name, "-")
			if end < 0 {
				break
			}
			if name = name[:end]; clusters[name] {
				c.resources[i].Cluster = name
				break
			}
		}
	}
}

// modules records the cluster modules, which keep the machines of a set on different hosts. The provider stores the ids of modules only in
// the management cluster, so the machines of a module tell its owner.
func (c *collector) modules(ctx context.Context, api *rest.Client) error {
	manager := cluster.NewManager(api)
	all, err := manager.ListModules(ctx)
	if isAbsent(err) {
		return nil // the vCenter is older than modules
	}
	if err != nil {
		return err
	}
	for _, module := range all {
		members, err := manager.ListModuleMembers(ctx, module.Module)
		if isGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		if r, is := c.ownerOf(members); is {
			r.Kind, r.ID, r.Cost = kindModule, module.Module, cloud.CostNone
			c.add(r, types.ManagedObjectReference{Type: kindModule, Value: module.Module})
		}
	}
	return nil
}

// ownerOf returns the cluster of these machines. If they belong to several clusters, it prefers a cluster of the own fleet, and the others
// are users. The result does not depend on the order of the machines.
func (c *collector) ownerOf(members []types.ManagedObjectReference) (cloud.Resource, bool) {
	var r cloud.Resource
	members = slices.SortedFunc(slices.Values(members), func(a, b types.ManagedObjectReference) int {
		one, two := c.owners[a], c.owners[b]
		if (one.Fleet == c.fleet) != (two.Fleet == c.fleet) {
			if one.Fleet == c.fleet {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(one.Cluster, two.Cluster), cmp.Compare(one.Fleet, two.Fleet), cmp.Compare(a.Value, b.Value))
	})
	for _, m := range members {
		owner, ok := c.owners[m]
		switch {
		case !ok:
			r.Users = append(r.Users, "machine "+m.Value)
		case r.Cluster == "":
			r.Cluster, r.Fleet = owner.Cluster, owner.Fleet
		case r.Cluster != owner.Cluster || r.Fleet != owner.Fleet:
			r.Users = append(r.Users, owner.Cluster)
		}
	}
	slices.Sort(r.Users)
	r.Users = slices.Compact(r.Users)
	return r, r.Cluster != ""
}

// volumes records the volumes that vSphere's storage driver has made for pods. They have the name of the cluster from the driver's
// configuration, CLUSTER or NAMESPACE/CLUSTER, but not the fleet. It skips volumes of unknown clusters, because somebody else's driver may
// have made them.
func (c *collector) volumes(ctx context.Context) error {
	if there, err := c.hasVolumes(ctx); err != nil || !there {
		return err
	}
	api, err := cns.NewClient(ctx, c.client)
	if err != nil {
		return err
	}
	c.account.guard(api.Client)
	api.RoundTripper = &answers{api.RoundTripper, mostPages}
	clusters := map[string]bool{}
	for _, name := range c.known {
		clusters[name] = true
	}
	for _, r := range c.resources {
		clusters[r.Cluster] = true
	}
	const page = 500
	offset := int64(0)
	for range mostPages {
		out, err := api.QueryVolume(ctx, cnstypes.CnsQueryFilter{Cursor: &cnstypes.CnsCursor{Offset: offset, Limit: page}})
		if err != nil {
			return err
		}
		for _, v := range out.Volumes {
			c.addVolume(v, clusters)
		}
		switch offset += int64(len(out.Volumes)); {
		case offset >= out.Cursor.TotalRecords:
			return nil
		case len(out.Volumes) == 0:
			return fmt.Errorf("vCenter has %d, and lists only %d", out.Cursor.TotalRecords, offset)
		}
	}
	return fmt.Errorf("the list does not end after %d pages", mostPages)
}

func (c *collector) addVolume(v cnstypes.CnsVolume, clusters map[string]bool) {
	r := cloud.Resource{Kind: kindVolume, ID: v.VolumeId.Id, Name: v.Name, Cost: cloud.CostStorage}
	for _, of := range append([]cnstypes.CnsContainerCluster{v.Metadata.ContainerCluster}, v.Metadata.ContainerClusterArray...) {
		name := of.ClusterId[strings.LastIndex(of.ClusterId, "/")+1:]
		switch {
		case name == "" || name == r.Cluster:
		case r.Cluster == "" && clusters[name]:
			r.Cluster = name
		default:
			r.Users = append(r.Users, of.ClusterId)
		}
	}
	if r.Cluster != "" {
		c.add(r, types.ManagedObjectReference{Type: kindVolume, Value: r.ID})
	}
}

// hasVolumes tells whether the vCenter has the API of volumes, which old versions lack. The API has its own URL.
func (c *collector) hasVolumes(ctx context.Context) (there bool, err error) {
	u := c.client.URL()
	u.Path, u.User = cns.Path, nil
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), http.NoBody)
	if err != nil {
		return false, err
	}
	return there, c.client.Client.Do(ctx, request, func(answer *http.Response) error {
		there = answer.StatusCode != http.StatusNotFound
		return nil
	})
}
