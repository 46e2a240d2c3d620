package refused

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // not every machine has a list of time zones

	"k8s.io/apimachinery/pkg/util/validation"
)

const mostPort = 65535

// portNumber reports a number that no port has.
func (p part) portNumber(field string) {
	if n, ok := p.number(field); ok && (n < 1 || n > mostPort) {
		p.refuse(field, fmt.Sprintf("%.0f is no port", n), fmt.Sprintf("write a number between 1 and %d", mostPort))
	}
}

// positive reports an amount that is not more than zero.
func (p part) positive(field string) {
	if amount, ok := p.quantity(field); ok && amount.Sign() <= 0 {
		p.refuse(field, fmt.Sprintf("%.40s is not more than 0", amount.String()), "write an amount such as 10Gi")
	}
}

// duration reports a text that is no length of time, in a field that the schema of its kind takes any text for.
func (p part) duration(field string) {
	text, ok := p.known(field)
	if !ok {
		return
	}
	if _, err := time.ParseDuration(text); err != nil {
		p.refuse(field, fmt.Sprintf("%.40q is no length of time", text), "write a number and its unit, as in 90s, 5m or 1h30m")
	}
}

// machineTimes are the fields of machines with lengths of time, in v1beta1.
var machineTimes = []string{"nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"}

// timeZone reports a time zone that nothing knows.
func (p part) timeZone(field string) {
	text, ok := p.known(field)
	if !ok {
		return
	}
	if _, err := time.LoadLocation(text); err != nil || strings.EqualFold(text, "local") {
		p.refuse(field, fmt.Sprintf("%.60q is no time zone", text), "write it as Europe/Berlin, or Etc/UTC")
	}
}

// hosts reports texts of a list that are no names of hosts.
func (p part) hosts(field string) {
	for i, host := range p.texts(field) {
		wrong := validation.IsDNS1123Subdomain(host)
		if strings.HasPrefix(host, "*.") {
			wrong = validation.IsWildcardDNS1123Subdomain(host)
		}
		if len(wrong) > 0 && !isFilledIn(host) {
			p.refuse(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%.80q is no name of a host", host),
				"write it without scheme, port and path, as in shop.example.com")
		}
	}
}
