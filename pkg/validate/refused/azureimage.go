package refused

import (
	"regexp"
	"slices"
	"strings"
)

// azureService is the name of a service that a subnet reaches directly.
var azureService = regexp.MustCompile(`^Microsoft\.[a-zA-Z]{1,42}[a-zA-Z0-9]{0,42}$`)

// azureImage judges the image of a machine.
func azureImage(p part) {
	if !p.given("image") {
		return
	}
	image := p.in("image")
	kinds := slices.DeleteFunc([]string{"id", "marketplace", "sharedGallery", "computeGallery"},
		func(kind string) bool { return !image.given(kind) })
	switch len(kinds) {
	case 0:
		p.refuse("image", "it names no image", "add marketplace, computeGallery or id")
	case 1:
	default:
		p.refuse("image", "it names an image by "+strings.Join(kinds, " and by "), "keep one of them")
	}
	for _, needs := range []struct {
		kind   string
		fields []string
	}{
		{"marketplace", []string{"publisher", "offer", "sku", "version"}},
		{"sharedGallery", []string{"subscriptionID", "resourceGroup", "gallery", "name", "version"}},
	} {
		for _, field := range needs.fields {
			if image.given(needs.kind) && !image.in(needs.kind).has(field) {
				image.refuse(needs.kind, "such an image needs "+field, "add "+field)
			}
		}
	}
	gallery := image.in("computeGallery")
	for _, pair := range [][2]string{{"subscriptionID", "resourceGroup"}, {"resourceGroup", "subscriptionID"}} {
		if gallery.given(pair[0]) && !gallery.given(pair[1]) {
			gallery.refuse(pair[0], "it needs "+pair[1], "add "+pair[1]+", or take both away for a public gallery")
		}
	}
}

// azureConfidential judges a machine whose disk is encrypted for itself alone.
func azureConfidential(p part) {
	kind, ok := p.in("osDisk").in("managedDisk").in("securityProfile").known("securityEncryptionType")
	if !ok || !p.given("securityProfile") {
		return
	}
	profile := p.in("securityProfile")
	uefi := profile.in("uefiSettings")
	if security := profile.word("securityType"); security != "ConfidentialVM" && !strings.Contains(security, "${") {
		profile.refuse("securityType", "only a confidential machine encrypts its disk with "+kind, "set it to ConfidentialVM")
	}
	if !uefi.has("vTpmEnabled") {
		profile.refuse("uefiSettings", "a confidential machine needs a virtual TPM", "set uefiSettings.vTpmEnabled to true")
	}
	if kind != "DiskWithVMGuestState" {
		return
	}
	if profile.has("encryptionAtHost") {
		profile.refuse("encryptionAtHost", "it cannot be true where the disk is encrypted with "+kind, "take it away")
	}
	if uefi.has("vTpmEnabled") && !uefi.has("secureBootEnabled") {
		profile.refuse("uefiSettings", "a disk that is encrypted with "+kind+" needs secure boot", "set uefiSettings.secureBootEnabled to true")
	}
}

// azureOutbound judges the load balancers by which machines reach the internet.
func azureOutbound(p part) {
	const shortest, longest, mostAddresses = 4, 30, 16
	for _, field := range []string{"apiServerLB", "nodeOutboundLB", "controlPlaneOutboundLB"} {
		balancer := p.in(field)
		balancer.between("idleTimeoutInMinutes", shortest, longest)
		if n, ok := balancer.number("frontendIPsCount"); ok && n > mostAddresses {
			balancer.between("frontendIPsCount", 0, mostAddresses)
		}
	}
	if p.given("controlPlaneOutboundLB") && p.in("apiServerLB").word("type") != "Internal" {
		p.refuse("controlPlaneOutboundLB", "the load balancer of a public API server serves the control plane, too",
			"take it away, or set apiServerLB.type to Internal")
	}
}

// azureEndpoints judges the services that a subnet reaches directly.
func azureEndpoints(subnet part) {
	services := map[string]bool{}
	for _, endpoint := range subnet.each("serviceEndpoints") {
		service, known := endpoint.known("service")
		switch {
		case !endpoint.has("service"):
			endpoint.refuse("", "it needs service", "add service, such as Microsoft.Storage")
		case known && !azureService.MatchString(service):
			endpoint.refuse("service", "it is no name of a service", "write it as Microsoft.Storage")
		case services[service]:
			endpoint.refuse("service", "another endpoint has this service, too", "make one of the two")
		}
		services[service] = known
		if !endpoint.has("locations") {
			endpoint.refuse("", "it needs locations", `add locations, such as ["*"]`)
		}
	}
}
