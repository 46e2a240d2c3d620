package refused

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var (
	azureZone = regexp.MustCompile(`^[1-9]$`)
	azureUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// azureGroupName is the name of a resource group, which has letters and digits of all languages. Such a pattern takes megabytes.
var azureGroupName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-\p{L}\p{N}_.()]{0,89}[-\p{L}\p{N}_()]$`) })

func azureMachinePool(p part) {
	azureTags(p, azureMachineTags)
	vm := p.in("template")
	azureVM(vm)
	azureNICs(vm)
	azureRegion(p)
	vm.between("terminateNotificationTimeout", 5, 15)
	rolling := p.in("strategy").in("rollingUpdate")
	surge, hasSurge := rolling.number("maxSurge")
	if out, has := rolling.number("maxUnavailable"); has && out == 0 && hasSurge && surge == 0 {
		rolling.refuse("maxUnavailable", "it cannot be 0 where maxSurge is 0", "set one of the two to 1 or more")
	}
	if identity := p.word("identity"); p.has("userAssignedIdentities") != (identity == "UserAssigned") {
		p.refuse(cmpField(p, "userAssignedIdentities", "identity"),
			"identity UserAssigned and userAssignedIdentities go together", "write both, or none")
	}
}

// azureAccount judges where in Azure a cluster is: its subscription, and its resource group, in the field group.
func azureAccount(p part, group string) {
	if id, ok := p.known("subscriptionID"); ok && !azureUUID.MatchString(id) {
		p.refuse("subscriptionID", fmt.Sprintf("%.60q is no id of a subscription", id), "write the id that `az account show` has, not the name")
	}
	if name, ok := p.known(group); ok && !azureGroupName().MatchString(name) {
		p.refuse(group, fmt.Sprintf("%.90q is no name of a resource group", name),
			"use up to 90 letters, digits and - _ . ( ), without a . at the end")
	}
}

// azureAddresses judges the number of addresses of the API server's load balancer, as validateAPIServerLB in CAPZ's
// internal/webhooks/azurecluster_validation.go does. With CAPZ's feature APIServerILB a public one has a private address, too.
func azureAddresses(balancer part, addresses []part) {
	public, private := 0, 0
	for _, address := range addresses {
		if address.given("publicIP") {
			public++
		}
		if address.has("privateIP") {
			private++
		}
	}
	switch internal := balancer.word("type") == "Internal"; {
	case len(addresses) == 0: // the provider adds one
	case internal && private != 1 && public == 0:
		balancer.refuse("frontendIPs", "an internal load balancer of the API server has one private address", "give one of them privateIP")
	case !internal && public > 1:
		balancer.refuse("frontendIPs", "the load balancer of the API server has one public address", "take the others away")
	case balancer.word("type") == "Public" && public == 0:
		balancer.refuse("frontendIPs", "a public load balancer has one public address", "add publicIP, or set type to Internal")
	}
}

// azurePrice judges the price that a spot machine may cost in an hour.
func azurePrice(p part, field string) {
	price, err := strconv.ParseFloat(p.word(field), 64)
	if number, is := p.number(field); is {
		price, err = number, nil
	}
	if err == nil && price <= 0 && price != -1 {
		p.refuse(field, fmt.Sprintf("%v is no price", price),
			"write a price in US dollars above 0, or -1 for none higher than that of other machines")
	}
}

// azureZones judges the zones of machines.
func azureZones(p part, field string) {
	list, _ := p.fields[field].([]any)
	for i, item := range list {
		if zone, is := item.(string); is && zone != "" && !strings.Contains(zone, "${") && !azureZone.MatchString(zone) {
			p.refuse(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%.60q is no zone: in Azure each region numbers its own", zone),
				`write its number, as in "1"`)
		}
	}
}
