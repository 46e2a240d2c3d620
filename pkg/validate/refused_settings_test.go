package validate

import (
	"strings"
	"testing"
)

const rosaSpec = `{version: 4.19.3, subnets: [a], availabilityZones: [b], oidcID: o,
  installerRoleARN: i, supportRoleARN: s, workerRoleARN: w,
  rolesRef: {ingressARN: a, imageRegistryARN: a, storageARN: a, networkARN: a, kubeCloudControllerARN: a, nodePoolManagementARN: a,
  controlPlaneOperatorARN: a, kmsProviderARN: a}MORE}`

// What the webhooks of CAPZ and CAPA refuse of settings of AKS and of ROSA; "" is what they take.
func TestRefusedSettings(t *testing.T) {
	rosa := func(more string) string {
		if more != "" {
			more = ", " + more
		}
		return strings.Replace(rosaSpec, "MORE", more, 1)
	}
	for _, tc := range []struct{ kind, spec, want string }{
		{"AzureManagedControlPlane", `autoscalerProfile: {maxEmptyBulkDelete: "10", maxGracefulTerminationSec: "600", maxNodeProvisionTime: 15m,
			maxTotalUnreadyPercentage: "45", newPodScaleUpDelay: 0s, okTotalUnreadyCount: "3", scanInterval: 10s, scaleDownDelayAfterAdd: 10m,
			scaleDownDelayAfterDelete: 10s, scaleDownUtilizationThreshold: "0.5"}`, ""},
		{"AzureManagedControlPlane", `autoscalerProfile: {maxEmptyBulkDelete: "-1"}`, "maxEmptyBulkDelete"},
		{"AzureManagedControlPlane", `autoscalerProfile: {maxEmptyBulkDelete: "1.5"}`, "maxEmptyBulkDelete"},
		{"AzureManagedControlPlane", `autoscalerProfile: {maxTotalUnreadyPercentage: "101"}`, "maxTotalUnreadyPercentage"},
		{"AzureManagedControlPlane", `autoscalerProfile: {scaleDownUtilizationThreshold: "1.5"}`, "scaleDownUtilizationThreshold"},
		{"AzureManagedControlPlane", `autoscalerProfile: {maxNodeProvisionTime: 900s}`, "maxNodeProvisionTime"},
		{"AzureManagedControlPlane", `autoscalerProfile: {scanInterval: 1m}`, "scanInterval"},
		{"AzureManagedControlPlaneTemplate", `autoscalerProfile: {scaleDownUnreadyTime: 20s}`, "scaleDownUnreadyTime"},
		{"AzureManagedControlPlane", `autoscalerProfile: {newPodScaleUpDelay: soon}`, "newPodScaleUpDelay"},
		{"AzureManagedControlPlane", `autoscalerProfile: {scanInterval: "${interval}"}`, ""},
		{"AzureManagedControlPlane", `dnsServiceIP: 10.0.0.11`, "ends with .10"},
		{"AzureManagedControlPlane", `dnsServiceIP: dns`, "no address"},
		{"AzureManagedControlPlane", `fleetsMember: {name: Shop}`, "fleetsMember.name"},
		{"AzureManagedControlPlane", `extensions: [{name: flux, version: "1.2"}]`, "extensions[0].version"},
		{"AzureManagedControlPlane", `extensions: [{name: flux, version: "1.2", autoUpgradeMinorVersion: false}]`, ""},
		{"AzureManagedControlPlane", `extensions: [{name: flux, scope: {scopeType: Cluster}}]`, "needs releaseNamespace"},
		{
			"AzureManagedControlPlane", `extensions: [{name: a, scope: {scopeType: Namespace, targetNamespace: a, releaseNamespace: b}}]`,
			"releaseNamespace: an extension",
		},
		{"AzureManagedMachinePoolTemplate", `maxPods: 300`, "maxPods"},
		{"AzureManagedMachinePool", `{mode: User, kubeletConfig: {cpuCfsQuotaPeriod: 1s}}`, "cpuCfsQuotaPeriod"},
		{
			"AzureManagedMachinePool", `{mode: User, kubeletConfig: {imageGcLowThreshold: 90, imageGcHighThreshold: 80}}`,
			"imageGcLowThreshold: 90",
		},
		{"AzureManagedMachinePool", `kubeletConfig: {allowedUnsafeSysctls: [net.core.somaxconn, vm.swappiness]}`, "allowedUnsafeSysctls[1]"},
		{"AzureManagedMachinePool", `linuxOSConfig: {swapFileSizeMB: 1500}`, "swapFileSizeMB"},
		{"AzureManagedMachinePool", `{linuxOSConfig: {swapFileSizeMB: 1500}, kubeletConfig: {failSwapOn: false}}`, ""},
		{"AzureManagedMachinePool", `linuxOSConfig: {sysctls: {netIpv4IPLocalPortRange: 32768-60999}}`, "no range of ports"},
		{"AzureManagedMachinePool", `linuxOSConfig: {sysctls: {netIpv4IPLocalPortRange: "1000 60999"}}`, "AKS takes a range"},
		{"AzureManagedMachinePool", `linuxOSConfig: {sysctls: {netIpv4IPLocalPortRange: "32768 60999"}}`, ""},
		{"AzureManagedMachinePool", `subnetName: a b`, "subnetName"},
		{"AWSClusterRoleIdentity", "{sourceIdentityRef: {kind: a, name: b}, sessionName: fleet-staging, externalID: 'a:b/c'}", ""},
		{"AWSClusterRoleIdentity", "{sourceIdentityRef: {kind: a, name: b}, sessionName: " + strings.Repeat("a", 65) + "}", "sessionName"},
		{"AWSClusterRoleIdentity", "{sourceIdentityRef: {kind: a, name: b}, externalID: a b}", "externalID"},
		{"ROSAControlPlane", rosa(""), ""},
		{"ROSAControlPlane", strings.Replace(rosa(""), "4.19.3", "v4.19.3", 1), "no version of OpenShift"},
		{"ROSAControlPlane", strings.Replace(rosa(""), "4.19.3", `"4.19"`, 1), "no version of OpenShift"},
		{"ROSAControlPlane", rosa("etcdEncryptionKMSARN: 'arn:aws:kms:eu-central-1:123456789012:alias/etcd'"), "no ARN of a key"},
		{"ROSAControlPlane", rosa("etcdEncryptionKMSARN: 'arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-96ef-1234567890ab'"), ""},
		{"ROSAControlPlane", rosa("fips: Enabled"), "fips: it needs a key"},
		{"ROSAControlPlane", rosa("externalAuthProviders: [{name: a}]"), "not enabled"},
		{
			"ROSAControlPlane", rosa("clusterRegistryConfig: {registrySources: {allowedRegistries: [a], blockedRegistries: [b]}}"),
			"blockedRegistries",
		},
		{"ROSAControlPlane", rosa("network: {podCIDR: 10.128.0.0}"), "network.podCIDR"},
		{
			"ROSAControlPlane", "{version: 4.19.3, rosaNetworkRef: {name: b}, rosaRoleConfigRef: {name: a}, workerRoleARN: w}",
			"workerRoleARN: the roles are those of",
		},
		{"ROSAControlPlane", "{version: 4.19.3, rosaRoleConfigRef: {name: a}, rosaNetworkRef: {name: b}}", ""},
		{
			"ROSAControlPlane", "{version: 4.19.3, rosaRoleConfigRef: {name: a}, rosaNetworkRef: {name: b}, subnets: [c]}",
			"subnets: the network is",
		},
		{"ROSAControlPlane", "{version: 4.19.3, rosaRoleConfigRef: {name: a}, subnets: [c]}", "needs availabilityZones"},
		{"ROSAControlPlane", "{version: 4.19.3, rosaNetworkRef: {name: b}, oidcID: a}", "needs installerRoleARN"},
		{"ROSAMachinePool", "nodeDrainGracePeriod: 200h", "more than a week"},
		{"ROSAMachinePool", "{version: 4.19.3, nodeDrainGracePeriod: 168h}", ""},
		{"ROSAMachinePool", "version: v4.19.3", "no version of OpenShift"},
	} {
		got := refusedOf(t, tc.kind, tc.spec)
		switch {
		case tc.want == "" && len(got) > 0:
			t.Errorf("%s %s: %q", tc.kind, tc.spec, got)
		case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
			t.Errorf("%s %s: %q, want %q", tc.kind, tc.spec, got, tc.want)
		}
	}
}
