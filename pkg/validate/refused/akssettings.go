package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	aksMinutes     = regexp.MustCompile(`^\d+m$`)
	aksSeconds     = regexp.MustCompile(`^\d+s$`)
	aksFleetMember = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	aksSubnetName  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,78}[a-zA-Z0-9]$`)
	aksSysctl      = regexp.MustCompile(`^(kernel\.shm.+|kernel\.msg.+|kernel\.sem|fs\.mqueue\..+|net\..+)$`)
	aksPortRange   = regexp.MustCompile(`^([0-9]+) ([0-9]+)$`)
)

// aksControlPlaneTemplate checks what the webhook of the template checks, which is less than that of the control plane.
func aksControlPlaneTemplate(p part) {
	if version, ok := p.known("version"); ok && !aksVersion.MatchString(version) {
		p.refuse("version", fmt.Sprintf("%.80q is no version", version), "write all three numbers, as in v1.36.3")
	}
	aksSecurity(p)
	aksNetwork(p)
	aksAutoscaler(p.in("autoscalerProfile"))
	aksExtensions(p)
}

// aksNames judges names and addresses. Azure reserves some of them.
func aksNames(p part) {
	for _, kept := range []string{"microsoft", "windows"} {
		if name := p.object.Name; strings.Contains(strings.ToLower(name), kept) {
			part{p.object, nil, "metadata", p.report}.refuse("name", fmt.Sprintf("no name in Azure may have %s in it", kept), "give it another name")
		}
	}
	if name, ok := p.in("fleetsMember").known("name"); ok && !aksFleetMember.MatchString(name) {
		p.in("fleetsMember").refuse("name", fmt.Sprintf("%.80q is no name of a member of a fleet", name), "use lower-case letters, digits and -")
	}
	text, ok := p.known("dnsServiceIP")
	if !ok {
		return
	}
	switch _, err := netip.ParseAddr(text); {
	case err != nil:
		p.refuse("dnsServiceIP", fmt.Sprintf("%.80q is no address", text), "write it as 10.0.0.10")
	case !strings.HasSuffix(text, ".10"):
		p.refuse("dnsServiceIP", "AKS takes an address that ends with .10 alone", "take the address of the services' range that ends with .10")
	}
}

// aksAutoscaler judges the settings of the autoscaler. All settings are texts, even the numbers.
func aksAutoscaler(p part) {
	form := func(is func(string) bool, hint string, names ...string) {
		for _, field := range names {
			if text, ok := p.known(field); ok && !is(text) {
				p.refuse(field, fmt.Sprintf("%.40q is none that AKS takes", text), hint)
			}
		}
	}
	number := func(most float64, bits int) func(string) bool {
		return func(text string) bool {
			n, err := strconv.ParseFloat(text, bits)
			if _, whole := strconv.Atoi(text); most != 1 && whole != nil {
				return false
			}
			return err == nil && n >= 0 && (most == 0 || n <= most)
		}
	}
	const percent, part = 100, 1
	form(number(0, 64), `write a whole number as text: "10"`, "maxEmptyBulkDelete", "maxGracefulTerminationSec", "okTotalUnreadyCount")
	form(number(percent, 64), `write a number from 0 to 100 as text: "45"`, "maxTotalUnreadyPercentage")
	form(number(part, 32), `write a number from 0 to 1 as text: "0.5"`, "scaleDownUtilizationThreshold")
	form(aksMinutes.MatchString, "write it in minutes, as in 15m", "maxNodeProvisionTime", "scaleDownDelayAfterAdd",
		"scaleDownDelayAfterFailure",
		"scaleDownUnneededTime", "scaleDownUnreadyTime")
	form(aksSeconds.MatchString, "write it in seconds, as in 10s", "scanInterval", "scaleDownDelayAfterDelete")
	isTime := func(text string) bool { _, err := time.ParseDuration(text); return err == nil }
	form(isTime, "write a time such as 10s", "newPodScaleUpDelay")
}

// aksExtensions judges the extensions of the cluster.
func aksExtensions(p part) {
	for _, extension := range p.each("extensions") {
		if keeps, is := extension.fields["autoUpgradeMinorVersion"].(bool); extension.given("version") && (!is || keeps) {
			extension.refuse("version", "an extension that is upgraded by itself has no version",
				"set autoUpgradeMinorVersion to false, or take it away")
		}
		scope := extension.in("scope")
		needs, not := "releaseNamespace", "targetNamespace"
		switch scope.word("scopeType") {
		case "Cluster":
		case "Namespace":
			needs, not = not, needs
		default:
			continue
		}
		if !scope.has(needs) {
			scope.refuse("scopeType", "an extension of the scope "+scope.word("scopeType")+" needs "+needs, "add "+needs)
		}
		if scope.has(not) {
			scope.refuse(not, "an extension of the scope "+scope.word("scopeType")+" does not have it", "take it away")
		}
	}
}

// aksKubelet judges the settings of nodes: the kubelet's, and those of Linux.
func aksKubelet(p part) {
	kubelet := p.in("kubeletConfig")
	if period, ok := kubelet.known("cpuCfsQuotaPeriod"); ok && !strings.HasSuffix(period, "ms") {
		kubelet.refuse("cpuCfsQuotaPeriod", fmt.Sprintf("%.40q is not in milliseconds", period), "write it as 100ms")
	}
	low, hasLow := kubelet.number("imageGcLowThreshold")
	high, hasHigh := kubelet.number("imageGcHighThreshold")
	if hasLow && hasHigh && low > high {
		kubelet.refuse("imageGcLowThreshold", fmt.Sprintf("%.0f is more than imageGcHighThreshold, %.0f", low, high), "lower it")
	}
	sysctls, _ := kubelet.fields["allowedUnsafeSysctls"].([]any)
	for i, item := range sysctls {
		if name, _ := item.(string); name != "" && !strings.Contains(name, "${") && !aksSysctl.MatchString(name) {
			kubelet.refuse(fmt.Sprintf("allowedUnsafeSysctls[%d]", i), fmt.Sprintf("AKS allows nobody %.80s", name),
				"take it away: only kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* and net.* can be allowed")
		}
	}
	linux := p.in("linuxOSConfig")
	if fails, is := kubelet.fields["failSwapOn"].(bool); linux.given("swapFileSizeMB") && (!is || fails) {
		linux.refuse("swapFileSizeMB", "the kubelet does not start on a node that swaps",
			"set kubeletConfig.failSwapOn to false, or take it away")
	}
	ports := linux.in("sysctls")
	text, ok := ports.known("netIpv4IPLocalPortRange")
	if !ok {
		return
	}
	const leastFirst, mostFirst, leastLast, mostLast = 1024, 60999, 32768, 65000
	found := aksPortRange.FindStringSubmatch(text)
	if found == nil {
		ports.refuse("netIpv4IPLocalPortRange", fmt.Sprintf("%.40q is no range of ports", text), `write two numbers: "32768 60999"`)
		return
	}
	first, _ := strconv.Atoi(found[1]) // they are digits; a number that is too large is refused below
	last, _ := strconv.Atoi(found[2])
	if first < leastFirst || first > mostFirst || last < leastLast || last > mostLast || first > last {
		ports.refuse("netIpv4IPLocalPortRange", fmt.Sprintf("AKS takes a range that begins within %d and %d, and ends within %d and %d",
			leastFirst, mostFirst, leastLast, mostLast), "give such a range")
	}
}
