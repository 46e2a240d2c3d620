package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

var vsphereHardware = regexp.MustCompile(`^vmx-[1-9][0-9]?$`)

// vsphereMachine judges the spec of a virtual machine.
func vsphereMachine(p part) {
	if p.in("network").has("preferredAPIServerCidr") {
		p.in("network").refuse("preferredAPIServerCidr", "the provider does not use it any more", "take it away")
	}
	if p.isTemplate() && p.given("providerID") {
		p.refuse("providerID", "a template cannot have it: each machine has its own", "take it away")
	}
	for _, device := range p.in("network").each("devices") {
		vsphereDevice(device)
		vsphereAddresses(device)
	}
	vsphereShape(p)
	vsphereNames(p)
	if hardware, ok := p.known("hardwareVersion"); ok && p.isTemplate() && !vsphereHardware.MatchString(hardware) {
		p.refuse("hardwareVersion", fmt.Sprintf("%.80q is no version of virtual hardware", hardware), "write it as vmx-17")
	}
	if p.given("guestSoftPowerOffTimeout") {
		if p.word("powerOffMode") != "trySoft" {
			p.refuse("guestSoftPowerOffTimeout", "only a machine with powerOffMode trySoft waits for its guest",
				"set powerOffMode to trySoft, or take it away")
		}
		if d, err := time.ParseDuration(p.word("guestSoftPowerOffTimeout")); err == nil && d <= 0 {
			p.refuse("guestSoftPowerOffTimeout", "it is not more than 0", "write a time such as 5m")
		}
	}
	for _, device := range p.each("pciDevices") {
		vgpu, ids := device.has("vGPUProfile"), device.given("deviceId") && device.given("vendorId")
		if vgpu == ids || vgpu && (device.given("deviceId") || device.given("vendorId")) {
			device.refuse("", "a device is named by deviceId and vendorId, or by vGPUProfile", "write one of the two, and not both")
		}
	}
}

func vsphereDevice(p part) {
	addresses, _ := p.fields["ipAddrs"].([]any)
	if p.isTemplate() && len(addresses) > 0 {
		p.refuse("ipAddrs", "a template cannot have addresses: each machine has its own",
			"take it away, and set dhcp4, or name a pool in addressesFromPools")
		return
	}
	for i, address := range addresses {
		text, _ := address.(string)
		if _, err := netip.ParsePrefix(text); err != nil && !strings.Contains(text, "${") {
			p.refuse(fmt.Sprintf("ipAddrs[%d]", i), fmt.Sprintf("%.80q is no address with the length of its network's prefix", text),
				"write it as 192.0.2.10/24")
		}
	}
}

func vsphereFailureDomain(p part) {
	region, zone, topology := p.in("region"), p.in("zone"), p.in("topology")
	if topology.given("hosts") && !topology.has("computeCluster") {
		topology.refuse("hosts", "a host group belongs to a compute cluster", "add computeCluster")
	}
	if region.word("type") == "HostGroup" {
		region.refuse("type", "a region cannot be a group of hosts", "set it to Datacenter or ComputeCluster")
	}
	if zone.word("type") == "HostGroup" && !topology.given("hosts") {
		zone.refuse("type", "a group of hosts needs topology.hosts", "add topology.hosts")
	}
	for _, of := range []part{region, zone} {
		if of.word("type") == "ComputeCluster" && !topology.has("computeCluster") {
			of.refuse("type", "a cluster of hosts needs topology.computeCluster", "add topology.computeCluster")
		}
	}
	if topology.has("networks") && topology.has("networkConfigurations") {
		topology.refuse("networks", "it cannot be set together with networkConfigurations", "remove one of the two")
	}
	for _, network := range topology.each("networkConfigurations") {
		if !network.has("networkName") {
			network.refuse("", "a network needs its name", "add networkName")
		}
	}
}

// vsphereShape judges the processors and the memory of a machine.
func vsphereShape(p part) {
	const step = 4
	processors, counted := p.number("numCPUs")
	cores, given := p.number("numCoresPerSocket")
	if counted && given && processors > 0 && cores > 0 && int(processors)%int(cores) != 0 {
		p.refuse("numCoresPerSocket", fmt.Sprintf("%.0f processors do not fill sockets of %.0f", processors, cores),
			"let numCPUs be a multiple of it")
	}
	if memory, ok := p.number("memoryMiB"); ok && int(memory)%step != 0 {
		p.refuse("memoryMiB", fmt.Sprintf("%.0f is no multiple of %d, and vSphere takes no other memory", memory, step),
			fmt.Sprintf("write %d", (int(memory)/step+1)*step))
	}
	if name := p.object.Name; p.object.Kind == "VSphereVM" && p.word("os") == "Windows" && len(name) > longestWindowsName {
		part{p.object, nil, "metadata", p.report}.refuse("name",
			fmt.Sprintf("it has %d characters, and a machine with Windows takes %d", len(name), longestWindowsName), "give it a shorter name")
	}
}

// longestWindowsName is the longest name of a computer in NetBIOS, in characters.
const longestWindowsName = 15

// vsphereThumbprint is a fingerprint as the provider compares it: SHA-1 or SHA-256, in capitals.
var vsphereThumbprint = regexp.MustCompile(`^[0-9A-F]{2}(:[0-9A-F]{2}){19}((:[0-9A-F]{2}){12})?$`)

func vsphereCluster(p part) {
	if end := p.in("controlPlaneEndpoint"); end.has("host") && end.isZero("port") {
		end.refuse("port", "without a port nobody reaches the API server", "set it to 6443")
	}
	const hint = "`openssl s_client -connect SERVER:443 </dev/null | openssl x509 -noout -fingerprint -sha1` prints it"
	if text, ok := p.known("thumbprint"); ok && !vsphereThumbprint.MatchString(text) {
		p.refuse("thumbprint", fmt.Sprintf("%.100q is no fingerprint of a certificate: pairs of digits and capitals A to F, with : between them",
			text), hint)
	}
	server, ok := p.known("server")
	if host, _, _ := strings.Cut(strings.TrimPrefix(server, "https://"), "/sdk"); ok && strings.ContainsAny(host, "/@?# ") {
		p.refuse("server", fmt.Sprintf("%.80q is no address of a vCenter", server), "write its name, as in vcenter.example.com")
	}
}
