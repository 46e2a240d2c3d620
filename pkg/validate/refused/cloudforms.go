package refused

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// portRange reports ports of a rule in the wrong order, or that nothing has. Of ICMP, the numbers are types and codes.
func (p part) portRange(from, to string) {
	if protocol := strings.ToLower(p.word("protocol")); protocol != "tcp" && protocol != "udp" {
		return
	}
	least, hasLeast := p.number(from)
	most, hasMost := p.number(to)
	switch {
	case hasLeast && least > mostPort:
		p.refuse(from, fmt.Sprintf("%.0f is no port", least), fmt.Sprintf("write a number up to %d", mostPort))
	case hasMost && most > mostPort:
		p.refuse(to, fmt.Sprintf("%.0f is no port", most), fmt.Sprintf("write a number up to %d", mostPort))
	case hasLeast && hasMost && least > most:
		p.refuse(from, fmt.Sprintf("%.0f is more than %s, which is %.0f", least, to, most), "give the lower number to "+from)
	}
}

// awsIDs are the forms of ids in AWS.
var awsIDs = map[string]*regexp.Regexp{
	"ami": regexp.MustCompile(`^ami-[0-9a-f]{8,17}$`), "sg": regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`),
	"vpc": regexp.MustCompile(`^vpc-[0-9a-f]{8,17}$`),
}

// awsID reports an id that is none of its kind: it does not begin with the kind's letters.
func (p part) awsID(field, kind string) {
	if id, ok := p.known(field); ok && !awsIDs[kind].MatchString(id) && !strings.HasPrefix(id, kind+"-") {
		p.refuse(field, fmt.Sprintf("%.60q is no id of AWS", id), "write the id, which begins with "+kind+"-")
	}
}

// awsMachineIDs judges the ids of a machine's image and security groups.
func awsMachineIDs(p part) {
	if image := p.in("ami"); !strings.HasPrefix(image.word("id"), "resolve:ssm:") { // EC2 looks the image up by a parameter
		image.awsID("id", "ami")
	}
	for _, group := range p.each("additionalSecurityGroups") {
		group.awsID("id", "sg")
	}
}

var (
	awsDiskType = regexp.MustCompile(`^(gp|io|st|sc)[0-9]$`)
	azurePorts  = regexp.MustCompile(`^([0-9]{1,5})(-([0-9]{1,5}))?$`)
)

// azureTraffic judges the ports and addresses of a rule of a security group.
func azureTraffic(rule part) {
	for _, field := range []string{"sourcePorts", "destinationPorts"} {
		text, ok := rule.known(field)
		if !ok || text == "*" || strings.Contains(text, ",") {
			continue
		}
		found := azurePorts.FindStringSubmatch(text)
		if found == nil {
			rule.refuse(field, fmt.Sprintf("%.40q are no ports", text), "write a port, a range such as 8000-8100, or *")
			continue
		}
		first, _ := strconv.Atoi(found[1])
		last := first
		if found[3] != "" {
			last, _ = strconv.Atoi(found[3])
		}
		if first > last || last > mostPort {
			rule.refuse(field, fmt.Sprintf("%.40q is no range of ports", text), "write the lower port first, and none above 65535")
		}
	}
	for _, field := range []string{"source", "destination"} {
		if text, ok := rule.known(field); ok && strings.Contains(text, "/") {
			rule.network(field)
		}
	}
}

// gcpImages are how the addresses of images and of their families begin. CAPG passes them on as they are.
var gcpImages = map[string]string{"image": "projects/PROJECT/global/images/", "imageFamily": "projects/PROJECT/global/images/family/"}

// gcpSource judges what a machine starts from, and as whom it works.
func gcpSource(p part) {
	for field, of := range map[string]string{"image": "an image", "imageFamily": "a family of images"} {
		if text, ok := p.known(field); ok && !strings.Contains(text, "/") && (field == "image" || !p.has("image")) {
			p.refuse(field, fmt.Sprintf("%.80q is no address of %s", text, of), "write it as "+gcpImages[field]+text)
		}
	}
	account := p.in("serviceAccounts")
	if email, ok := account.known("email"); ok && email != "default" && !strings.Contains(email, "@") {
		account.refuse("email", fmt.Sprintf("%.80q is no address of a service account", email),
			"write it as NAME@PROJECT.iam.gserviceaccount.com, or default")
	}
}

// vsphereAddresses judges the addresses of a device of a machine in vSphere.
func vsphereAddresses(device part) {
	if text, ok := device.known("macAddr"); ok {
		if _, err := net.ParseMAC(text); err != nil {
			device.refuse("macAddr", fmt.Sprintf("%.40q is no address of a network card", text), "write it as 00:50:56:00:00:01")
		}
	}
	for field, is4 := range map[string]bool{"gateway4": true, "gateway6": false} {
		text, ok := device.known(field)
		if ip, err := netip.ParseAddr(text); ok && (err != nil || ip.Is4() != is4) {
			device.refuse(field, fmt.Sprintf("%.60q is no such address", text), "write the address alone, as in 192.0.2.1 or 2001:db8::1")
		}
	}
	for i, text := range device.texts("nameservers") {
		if _, err := netip.ParseAddr(text); err != nil && !isFilledIn(text) {
			device.refuse(fmt.Sprintf("nameservers[%d]", i), fmt.Sprintf("%.60q is no address", text), "write the server's address, not its name")
		}
	}
}

// neutronProtocols are the protocols that OpenStack knows by name, and vnicTypes the kinds of its network cards.
var (
	neutronProtocols = []string{
		"any", "ah", "dccp", "egp", "esp", "gre", "hopopt", "icmp", "icmpv6", "igmp", "ip", "ipip", "ipv6-encap", "ipv6-frag", "ipv6-icmp",
		"ipv6-nonxt", "ipv6-opts", "ipv6-route", "ospf", "pgm", "rsvp", "sctp", "tcp", "udp", "udplite", "vrrp",
	}
	vnicTypes = []string{
		"normal", "direct", "direct-physical", "macvtap", "baremetal", "virtio-forwarder", "vdpa", "smart-nic", "remote-managed",
		"accelerator-direct", "accelerator-direct-physical",
	}
)

// openstackProtocol reports a protocol that OpenStack does not know.
func openstackProtocol(rule part) {
	text, ok := rule.known("protocol")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 255 {
		return
	}
	if ok && !slices.Contains(neutronProtocols, strings.ToLower(text)) {
		rule.refuse("protocol", fmt.Sprintf("OpenStack knows no protocol %.40q", text), "write tcp, udp, icmp or another one, or its number")
	}
}

// endpoint judges the address of an API server.
func endpoint(p part) {
	end := p.in("controlPlaneEndpoint")
	if host, ok := end.known("host"); ok && strings.ContainsAny(host, "/ @") {
		end.refuse("host", fmt.Sprintf("%.80q is neither a name nor an address", host),
			"write it without scheme, port and path, as in api.example.com")
	}
	if n, ok := end.number("port"); ok && n != 0 {
		end.portNumber("port")
	}
}
