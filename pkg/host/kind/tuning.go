package kind

import "sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

// tune makes a control plane of one node start faster, above all after a reboot: with nobody to compete with, waiting for
// the lease of a dead predecessor (15 s) is time lost. kind renders kubeadm's v1beta3 or v1beta4, by Kubernetes version;
// a patch for the other one matches nothing.
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
	// Images that come from a registry are pulled side by side.
	config.KubeadmConfigPatches = append(config.KubeadmConfigPatches, `
kind: KubeletConfiguration
serializeImagePulls: false
maxParallelImagePulls: 4`)
}
