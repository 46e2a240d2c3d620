package main

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// strangers makes two machines that are not the fleet's, each for a cluster of the name shop: one says that it is of another fleet, and
// one says nothing, but was made by the provider and is named like a machine of that cluster.
func (s *site) strangers(ctx context.Context) (bool, error) {
	for name, settings := range map[string]map[string]string{
		"shop-other-fleet": {"fleetctl.fleet": "11111111-2222-3333-4444-555555555555", "fleetctl.cluster": "shop"},
		"shop-7bcdf-2ghjk": {"guestinfo.userdata.encoding": "base64"},
	} {
		if err := s.clone(ctx, name, settings); err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
	}
	return true, nil
}

func (s *site) clone(ctx context.Context, name string, settings map[string]string) error {
	finder := find.NewFinder(s.client.Client)
	vm, err := finder.VirtualMachine(ctx, "/DC0/vm/DC0_H0_VM0")
	if err != nil {
		return err
	}
	folder, err := finder.Folder(ctx, "/DC0/vm")
	if err != nil {
		return err
	}
	task, err := vm.Clone(ctx, folder, name, types.VirtualMachineCloneSpec{PowerOn: true})
	if err != nil {
		return err
	}
	made, err := task.WaitForResult(ctx)
	if err != nil {
		return err
	}
	var config []types.BaseOptionValue
	for key, value := range settings {
		config = append(config, &types.OptionValue{Key: key, Value: value})
	}
	clone := object.NewVirtualMachine(s.client.Client, made.Result.(types.ManagedObjectReference))
	if task, err = clone.Reconfigure(ctx, types.VirtualMachineConfigSpec{ExtraConfig: config}); err != nil {
		return err
	}
	return task.Wait(ctx)
}
