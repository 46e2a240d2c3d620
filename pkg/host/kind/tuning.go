package kind

import (
	"context"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// tune makes a control plane of one node start faster, above all after a reboot. A single node needs no leader election, which would wait
// 15 s for the lease of its predecessor. kind renders kubeadm's v1beta3 or v1beta4, by Kubernetes version. A patch for the other version
// matches nothing.
func tune(config *v1alpha4.Cluster) {
	patch := func(version, body string) {
		config.KubeadmConfigPatchesJSON6902 = append(config.KubeadmConfigPatchesJSON6902, v1alpha4.PatchJSON6902{
			Group: "kubeadm.k8s.io", Version: version, Kind: "ClusterConfiguration", Patch: body,
		})
	}
	patch("v1beta3", `
- {op: add, path: /controllerManager/extraArgs/leader-elect, value: "false"}
- {op: add, path: /scheduler/extraArgs, value: {leader-elect: "false"}}`)
	patch("v1beta4", `
- {op: add, path: /controllerManager/extraArgs/-, value: {name: leader-elect, value: "false"}}
- {op: add, path: /scheduler/extraArgs, value: [{name: leader-elect, value: "false"}]}`)
	// Pull images from registries in parallel.
	config.KubeadmConfigPatches = append(config.KubeadmConfigPatches, `
kind: KubeletConfiguration
serializeImagePulls: false
maxParallelImagePulls: 4`)
}

// nodeShares is the weight of the management cluster's node on a busy machine: four times that of a node of a workload cluster, which the
// docker provider makes on the same engine. The controllers that make workload clusters have to keep their leases meanwhile.
const nodeShares = 4 * 1024

// prefer gives the running control plane more of the processors than other containers get. An engine that cannot do this is no error: the
// control plane is only slower on a busy machine.
func (h *Host) prefer(ctx context.Context, detail func(string)) {
	if err := h.engine.SetCPUShares(ctx, h.controlPlane(), nodeShares); err != nil && ctx.Err() == nil {
		detail(err.Error())
	}
}
