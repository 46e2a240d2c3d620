package refused

import (
	"fmt"
	"slices"
	"strings"
)

// gcpSeries are the machine series that support each kind of confidential computing.
var gcpSeries = map[string][]string{
	"Enabled":                                {"n2d", "c2d", "c3d"},
	"AMDEncryptedVirtualization":             {"n2d", "c2d", "c3d"},
	"AMDEncryptedVirtualizationNestedPaging": {"n2d"},
	"IntelTrustedDomainExtensions":           {"c3"},
}

func gcpMachine(p part) {
	gcpType(p, "instanceType")
	gcpDisk(p)
	gcpSource(p)
	confidential := p.word("confidentialCompute")
	if confidential != "" && confidential != "Disabled" {
		if maintenance := p.word("onHostMaintenance"); maintenance == "" || maintenance == "Migrate" {
			p.refuse("confidentialCompute", "such a machine cannot move to another host", "set onHostMaintenance to Terminate")
		}
		kind, known := p.known("instanceType")
		series, _, _ := strings.Cut(kind, "-")
		if able := gcpSeries[confidential]; known && able != nil && !slices.Contains(able, series) {
			p.refuse("instanceType", fmt.Sprintf("machines of the series %.40s have no confidentialCompute %s", series, confidential),
				"take one of these series: "+strings.Join(able, ", "))
		}
	}
	gcpScheduling(p)
	gcpLabels(p)
	gcpTags(p, "additionalNetworkTags")
	gcpKey(p, "rootDiskEncryptionKey")
	for _, disk := range p.each("additionalDisks") {
		gcpKey(disk, "encryptionKey")
	}
}

// gcpKey judges the user's key that encrypts a disk.
func gcpKey(p part, field string) {
	if !p.given(field) {
		return
	}
	key := p.in(field)
	managed, supplied := key.given("managedKey"), key.given("suppliedKey")
	switch kind := key.word("keyType"); {
	case kind == "Managed" && (!managed || supplied):
		key.refuse("keyType", "a key of this type has managedKey alone", "write managedKey, and take suppliedKey away")
	case kind == "Supplied" && (!supplied || managed):
		key.refuse("keyType", "a key of this type has suppliedKey alone", "write suppliedKey, and take managedKey away")
	case kind == "Supplied" && key.in("suppliedKey").has("rawKey") && key.in("suppliedKey").has("rsaEncryptedKey"):
		key.in("suppliedKey").refuse("rawKey", "it cannot be set together with rsaEncryptedKey", "remove one of the two")
	}
}

func gcpCluster(p part) {
	gcpRegion(p, "region")
	gcpProject(p)
	gcpLabels(p)
	gcpNetwork(p.in("network"))
	// CAPG's cloud/services/compute/loadbalancers/reconcile.go makes nothing for other words, and so the API server gets no address.
	balancer, types := p.in("loadBalancer"), []string{"External", "Internal", "InternalExternal"}
	if kind, ok := balancer.known("loadBalancerType"); ok && !slices.Contains(types, kind) {
		balancer.refuse("loadBalancerType", fmt.Sprintf("the provider makes no load balancer of the type %.40q", kind),
			"take one of these: "+strings.Join(types, ", "))
	}
	for _, subnet := range p.in("network").each("subnets") {
		gcpRegion(subnet, "region")
	}
	zones, _ := p.fields["failureDomains"].([]any)
	region, given := p.known("region")
	given = given && gcpRegionForm.MatchString(region) // otherwise the region itself is wrong
	for i, item := range zones {
		zone, _ := item.(string)
		if given && zone != "" && !strings.Contains(zone, "${") && !strings.HasPrefix(zone, region+"-") {
			p.refuse(fmt.Sprintf("failureDomains[%d]", i), fmt.Sprintf("%.60q is no zone of the region %.40s", zone, region),
				"take one of this region: `gcloud compute zones list`")
		}
	}
}

func gkeCluster(p part) {
	gcpCluster(p)
	network := p.in("network")
	region, known := p.known("region")
	automatic, is := network.fields["autoCreateSubnetworks"].(bool)
	if !known || !is || automatic {
		return
	}
	if !slices.ContainsFunc(network.each("subnets"), func(s part) bool { return s.word("region") == region }) {
		p.refuse("network", "autoCreateSubnetworks is false, and none of subnets is in the region "+region, "add a subnet of that region")
	}
}
