package vsphere

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vapi/cluster"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// goneTimeout bounds the deletion of one resource.
const goneTimeout = 10 * time.Minute

// Stages returns modules and then machines. It leaves out volumes, because they contain data and do not name a fleet.
func (a *Account) Stages(resources []cloud.Resource) [][]cloud.Resource {
	return cloud.ByKind(resources, []string{kindModule, kindMachine})
}

// Delete deletes a resource that Find has listed, and waits until it is gone.
func (a *Account) Delete(ctx context.Context, resource cloud.Resource) error {
	ref, ok := a.refs[[2]string{resource.Kind, resource.ID}]
	if !ok {
		return errors.New("this vCenter has not listed it")
	}
	a.slots <- struct{}{}
	defer func() { <-a.slots }()
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	client, logout, err := a.open(ctx, goneTimeout)
	if err != nil {
		return diag.Wrap("", a.short(err), a.hint(err))
	}
	defer logout()
	switch resource.Kind {
	case kindModule:
		err = a.deleteModule(ctx, client, ref.Value)
	case kindMachine:
		err = deleteMachine(ctx, client, ref, resource)
	default:
		return fmt.Errorf("no command deletes a resource of kind %s", resource.Kind)
	}
	if err == nil || isGone(err) {
		return nil
	}
	hint := a.hint(err)
	if fault.Is(err, &types.NoPermission{}) {
		hint = "give the user this privilege on it, as the user of the provider has"
	}
	return diag.Wrap("", a.short(err), hint)
}

func (a *Account) deleteModule(ctx context.Context, client *vim25.Client, id string) error {
	api, logout, _, err := a.openREST(ctx, client)
	if err != nil || api == nil {
		return err
	}
	defer logout()
	return cluster.NewManager(api).DeleteModule(ctx, id)
}

// deleteMachine powers a machine off and destroys it. Before that, it checks the owner of the machine again. It also detaches disks that
// are not the machine's own, because vCenter would destroy them with the machine, volumes of pods among them.
func deleteMachine(ctx context.Context, client *vim25.Client, ref types.ManagedObjectReference, resource cloud.Resource) error {
	var content []types.ObjectContent
	collector := property.DefaultCollector(client)
	if err := collector.Retrieve(ctx, []types.ManagedObjectReference{ref}, machinePaths, &content); err != nil {
		return err
	}
	if len(content) == 0 {
		return errors.New("vCenter does not tell whose it is now")
	}
	for _, o := range content {
		if m := machineOf(o); m.fleet != resource.Fleet || m.cluster != resource.Cluster || m.fleet == "" || m.template {
			return fmt.Errorf("its %s and %s name another fleet or cluster now", fleetPath, clusterPath)
		}
	}
	vm := object.NewVirtualMachine(client, ref)
	state, err := vm.PowerState(ctx)
	if err != nil {
		return err
	}
	if state != types.VirtualMachinePowerStatePoweredOff {
		err := done(ctx)(vm.PowerOff(ctx))
		if err != nil && !fault.Is(err, &types.InvalidPowerState{}) { // it was powered off in the meantime
			return err
		}
	}
	if err := detach(ctx, vm); err != nil {
		return fmt.Errorf("detach the disks that are not its own: %w", said(err))
	}
	return done(ctx)(vm.Destroy(ctx))
}

// detach detaches the disks that were not made with the machine: disks that are separate objects in vSphere, and disks whose files are
// outside of the machine's folders in the datastores.
func detach(ctx context.Context, vm *object.VirtualMachine) error {
	var of mo.VirtualMachine
	if err := vm.Properties(ctx, vm.Reference(), []string{"name", "config.files.vmPathName", "config.hardware.device"}, &of); err != nil {
		return err
	}
	if of.Config == nil {
		return errors.New("vCenter does not know its configuration")
	}
	var file object.DatastorePath
	file.FromString(of.Config.Files.VmPathName)
	own := path.Dir(file.Path)
	devices := object.VirtualDeviceList(of.Config.Hardware.Device)
	foreign := devices.Select(func(device types.BaseVirtualDevice) bool {
		disk, is := device.(*types.VirtualDisk)
		return is && !isOwn(disk, own, of.Name)
	})
	if len(foreign) == 0 {
		return nil
	}
	return vm.RemoveDevice(ctx, true, foreign...)
}

func isOwn(disk *types.VirtualDisk, folder, name string) bool {
	backing, is := disk.Backing.(types.BaseVirtualDeviceFileBackingInfo)
	if !is || disk.VDiskId != nil {
		return false
	}
	var file object.DatastorePath
	if !file.FromString(backing.GetVirtualDeviceFileBackingInfo().FileName) {
		return false
	}
	dir := path.Dir(file.Path)
	return dir == folder || strings.TrimPrefix(dir, "/") == name // on another datastore, the machine's folder has the machine's name
}

// done returns a function that waits for a task.
func done(ctx context.Context) func(*object.Task, error) error {
	return func(task *object.Task, err error) error {
		if err != nil {
			return err
		}
		return task.Wait(ctx)
	}
}
