package vsphere

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/cns"
	cnstypes "github.com/vmware/govmomi/cns/types"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cloud"
)

func (v *vcenter) volumes() []string {
	v.t.Helper()
	api, err := cns.NewClient(v.t.Context(), v.client.Client)
	if err != nil {
		v.t.Fatal(err)
	}
	out, err := api.QueryVolume(v.t.Context(), cnstypes.CnsQueryFilter{})
	if err != nil {
		v.t.Fatal(err)
	}
	var ids []string
	for _, volume := range out.Volumes {
		ids = append(ids, volume.VolumeId.Id)
	}
	return ids
}

// attach gives a machine a disk whose file is in another folder, as with volumes of pods. Afterwards the file exists.
func (v *vcenter) attach(vm *object.VirtualMachine, file string) {
	v.t.Helper()
	ctx := v.t.Context()
	devices, err := vm.Device(ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	controller, err := devices.FindDiskController("")
	if err != nil {
		v.t.Fatal(err)
	}
	store, err := v.finder.DefaultDatastore(ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	dc, err := v.finder.DefaultDatacenter(ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	if err := object.NewFileManager(v.client.Client).MakeDirectory(ctx, "[LocalDS_0] volumes", dc, true); err != nil {
		v.t.Fatal(err)
	}
	disk := devices.CreateDisk(controller, store.Reference(), file)
	disk.CapacityInKB = 1024
	if err := vm.AddDevice(ctx, disk); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vcenter) hasFile(path string) bool {
	v.t.Helper()
	store, err := v.finder.DefaultDatastore(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	_, err = store.Stat(v.t.Context(), path)
	return err == nil
}

func TestDelete(t *testing.T) {
	v := newVCenter(t, 1)
	ctx := t.Context()
	first, second := v.clone("", "shop-x7k2p", made(fleet, "shop")), v.clone("k8s", "shop-general-x7k2p-9fh2k", made(fleet, "shop"))
	v.off(second)
	v.attach(first, "[LocalDS_0] volumes/pvc-1.vmdk")
	v.clone("", "shop-zzzzz", made(other, "shop"))
	v.clone("", "shop-bcdfg", made())
	module := v.module(first, second)
	v.volume("pvc-1", "shop")
	kept := v.volumes()

	a := v.account(password, v.cert)
	found := a.Find(ctx, fleet, []string{"shop"})
	if len(found.Problems) > 0 {
		t.Fatal(found.Problems)
	}
	ours := slices.DeleteFunc(found.Resources, func(r cloud.Resource) bool { return r.Fleet != fleet && r.Kind != kindVolume })
	stages := a.Stages(ours)
	if len(stages) != 2 || len(stages[0]) != 1 || stages[0][0].ID != module || len(stages[1]) != 2 {
		t.Fatalf("stages: %+v", stages)
	}
	for _, stage := range stages {
		for _, r := range stage {
			for range 2 { // the second time, the resource is gone
				if err := a.Delete(ctx, r); err != nil {
					t.Errorf("%s: %v", r.ID, err)
				}
			}
		}
	}
	left := slices.DeleteFunc(v.names(), func(name string) bool { return strings.HasPrefix(name, "DC0_") })
	if !slices.Equal(left, []string{"shop-bcdfg", "shop-zzzzz"}) {
		t.Errorf("left: %v", left)
	}
	if !v.hasFile("volumes/pvc-1.vmdk") || !slices.Equal(v.volumes(), kept) {
		t.Error("a volume went with its machine")
	}
	if v.hasFile("shop-x7k2p/shop-x7k2p.vmx") {
		t.Error("the machine's own files stay")
	}
	if err := a.Delete(ctx, cloud.Resource{Kind: kindMachine, ID: "/DC0/vm/DC0_H0_VM0"}); err == nil {
		t.Error("what was never listed is deleted")
	}
}

// A machine may get another owner between Find and Delete.
func TestDeleteLooksAgain(t *testing.T) {
	v := newVCenter(t, 1)
	ctx := t.Context()
	vm := v.clone("", "shop-x7k2p", made(fleet, "shop"))
	a := v.account(password, v.cert)
	found := a.Find(ctx, fleet, nil)
	if len(found.Resources) != 1 {
		t.Fatalf("%+v", found)
	}
	err := done(ctx)(vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{
		ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: v1alpha1.FleetKey, Value: other}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(ctx, found.Resources[0]); err == nil || !strings.Contains(err.Error(), "another fleet or cluster") {
		t.Errorf("%v", err)
	}
	if state, err := vm.PowerState(ctx); err != nil || state != types.VirtualMachinePowerStatePoweredOn {
		t.Errorf("%s, %v", state, err)
	}
}
