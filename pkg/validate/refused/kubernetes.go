package refused

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// builtIn are what judges kinds of Kubernetes itself, by group and kind, as the API server does after their schema.
var builtIn = map[string]func(part){
	"/Pod":                                func(p part) { pods(p.in("spec"), nil) },
	"apps/DaemonSet":                      workload,
	"apps/Deployment":                     deployment,
	"apps/ReplicaSet":                     workload,
	"apps/StatefulSet":                    workload,
	"batch/CronJob":                       cronJob,
	"batch/Job":                           func(p part) { job(p.in("spec")) },
	"networking.k8s.io/Ingress":           ingress,
	"networking.k8s.io/NetworkPolicy":     networkPolicy,
	"autoscaling/HorizontalPodAutoscaler": podAutoscaler,
}

// workload judges what keeps pods running.
func workload(p part) {
	spec := p.in("spec")
	selects(spec)
	var claims []string
	for _, claim := range spec.each("volumeClaimTemplates") {
		claims = append(claims, claim.in("metadata").word("name"))
	}
	template := spec.in("template").in("spec")
	template.oneOf("restartPolicy", "Always")
	pods(template, claims)
}

func deployment(p part) {
	workload(p)
	update := p.in("spec").in("strategy").in("rollingUpdate")
	if update.isZero("maxUnavailable") && update.isZero("maxSurge") {
		update.refuse("maxUnavailable", "it cannot be 0 where maxSurge is 0: no pod could ever be replaced", "let one of the two be at least 1")
	}
}

// selects reports labels that a selector asks for, and the template beside it does not give: no machine or pod of it would be its own.
func selects(spec part) {
	labels := spec.in("template").in("metadata").in("labels")
	wanted := spec.in("selector").in("matchLabels")
	for _, name := range wanted.names() {
		if want := wanted.word(name); labels.word(name) != want && !strings.Contains(want+labels.word(name), "${") {
			spec.refuse("selector.matchLabels", fmt.Sprintf("the template does not have the label %s: %s", name, want),
				"let the labels of the selector be among template.metadata.labels")
		}
	}
}

func cronJob(p part) {
	spec := p.in("spec")
	if text, ok := spec.known("schedule"); ok {
		if wrong := badSchedule(text); wrong != "" {
			spec.refuse("schedule", wrong, `write minute, hour, day, month and day of the week, as in "0 3 * * 1-5", or a word such as @daily`)
		}
	}
	job(spec.in("jobTemplate").in("spec"))
}

func job(spec part) {
	template := spec.in("template").in("spec")
	template.oneOf("restartPolicy", "OnFailure", "Never")
	if !template.given("restartPolicy") && template.given("containers") {
		template.refuse("", "a job's pods need a restartPolicy", "write OnFailure or Never")
	}
	pods(template, nil)
}

// oneOf reports a text that is given and not among those that the field takes here.
func (p part) oneOf(field string, all ...string) {
	if text, ok := p.known(field); ok && !slices.Contains(all, text) {
		p.refuse(field, fmt.Sprintf("%.80q is not possible here", text), "write "+strings.Join(all, " or "))
	}
}

func ingress(p part) {
	for _, rule := range p.in("spec").each("rules") {
		host, ok := rule.known("host")
		if !ok {
			continue
		}
		wrong := validation.IsDNS1123Subdomain(host)
		if strings.HasPrefix(host, "*.") {
			wrong = validation.IsWildcardDNS1123Subdomain(host)
		}
		if len(wrong) > 0 {
			rule.refuse("host", fmt.Sprintf("%.80q is no name of a host", host), "write it without scheme, port and path, as in shop.example.com")
		}
	}
}

func networkPolicy(p part) {
	spec := p.in("spec")
	for _, way := range []struct{ direction, peers string }{{"ingress", "from"}, {"egress", "to"}} {
		for _, rule := range spec.each(way.direction) {
			for _, peer := range rule.each(way.peers) {
				ipBlock(peer.in("ipBlock"))
			}
		}
	}
}

func ipBlock(block part) {
	whole, ok := block.network("cidr")
	for _, inner := range block.networks("except") {
		if ok && (!whole.Contains(inner.Addr()) || inner.Bits() <= whole.Bits()) {
			block.refuse("except", inner.String()+" is no part of "+whole.String(), "name a smaller network that is in cidr")
		}
	}
}

func podAutoscaler(p part) {
	spec := p.in("spec")
	least, given := spec.number("minReplicas")
	if most, ok := spec.number("maxReplicas"); ok && given && least > most {
		spec.refuse("minReplicas", fmt.Sprintf("%v is more than maxReplicas, which is %v", least, most), "let it be at most maxReplicas")
	}
}
