package refused

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// builtIn are the checks of Kubernetes' own kinds and of Flux's kinds, by group and kind, as the API server and source-controller make them
// after the schema.
var builtIn = map[string]func(part){
	"/Pod":                                func(p part) { pods(p.in("spec"), nil) },
	"apps/DaemonSet":                      daemonSet,
	"apps/Deployment":                     deployment,
	"apps/ReplicaSet":                     workload,
	"apps/StatefulSet":                    workload,
	"batch/CronJob":                       cronJob,
	"batch/Job":                           func(p part) { job(p.in("spec")) },
	"networking.k8s.io/Ingress":           ingress,
	"networking.k8s.io/NetworkPolicy":     networkPolicy,
	"autoscaling/HorizontalPodAutoscaler": podAutoscaler,
	"/Service":                            service,
	"/Secret":                             secretKeys,
	"/ConfigMap":                          configKeys,
	"/ResourceQuota":                      quota,
	"/LimitRange":                         limitRange,
	"/PersistentVolumeClaim":              claim,
	"/Namespace":                          namespace,
	"policy/PodDisruptionBudget":          disruptionBudget,
	rbacGroup + "/Role":                   role,
	rbacGroup + "/ClusterRole":            role,
	rbacGroup + "/RoleBinding":            roleBinding,
	rbacGroup + "/ClusterRoleBinding":     roleBinding,
	"scheduling.k8s.io/PriorityClass":     priorityClass,

	"source.toolkit.fluxcd.io/GitRepository":  gitRepository,
	"source.toolkit.fluxcd.io/HelmRepository": helmRepository,
	"source.toolkit.fluxcd.io/OCIRepository":  ociRepository,
	"helm.toolkit.fluxcd.io/HelmRelease":      helmRelease,
	"image.toolkit.fluxcd.io/ImagePolicy":     imagePolicy,
	"image.toolkit.fluxcd.io/ImageRepository": imageRepository,
}

// workload judges the kinds that keep pods running.
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
	strategy := p.in("spec").in("strategy")
	update := strategy.in("rollingUpdate")
	if strategy.word("type") == "Recreate" && strategy.given("rollingUpdate") {
		strategy.refuse("rollingUpdate", "it cannot be set where type is Recreate", "take it away, or write type: RollingUpdate")
	}
	update.share("maxSurge")
	update.share("maxUnavailable")
	if update.isZero("maxUnavailable") && update.isZero("maxSurge") {
		update.refuse("maxUnavailable", "it cannot be 0 where maxSurge is 0: no pod could ever be replaced", "let one of the two be at least 1")
	}
	const usualDeadline = 600
	spec := p.in("spec")
	deadline, given := spec.number("progressDeadlineSeconds")
	if !given {
		deadline = usualDeadline
	}
	if ready, ok := spec.number("minReadySeconds"); ok && ready >= deadline {
		spec.refuse("minReadySeconds", fmt.Sprintf("%v is not less than progressDeadlineSeconds, which is %v", ready, deadline),
			"let a pod be ready for a shorter time, or raise progressDeadlineSeconds")
	}
}

// daemonSet judges the rollout of a DaemonSet: it replaces pods in their place, or starts new ones beside them.
func daemonSet(p part) {
	workload(p)
	update := p.in("spec").in("updateStrategy").in("rollingUpdate")
	update.share("maxSurge")
	update.share("maxUnavailable")
	nothing := func(field string) bool { return update.isZero(field) || !update.given(field) }
	switch {
	case update.isZero("maxUnavailable") && nothing("maxSurge"):
		update.refuse("maxUnavailable", "it cannot be 0 where maxSurge is 0: no pod could ever be replaced", "let one of the two be at least 1")
	case update.given("maxUnavailable") && !nothing("maxUnavailable") && !nothing("maxSurge"):
		update.refuse("maxSurge", "it cannot be more than 0 where maxUnavailable is", "let one of the two be 0")
	}
}

// selects reports labels that a selector requires and that the template beside it lacks. The object would not select its own pods or
// machines. The labels in filledIn are not judged: the server writes them into both.
func selects(spec part, filledIn ...string) {
	labels := spec.in("template").in("metadata").in("labels")
	wanted := spec.in("selector").in("matchLabels")
	for _, name := range wanted.names() {
		if slices.Contains(filledIn, name) {
			continue
		}
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
	spec.timeZone("timeZone")
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

// oneOf reports a text that is set and not one of all.
func (p part) oneOf(field string, all ...string) {
	if text, ok := p.known(field); ok && !slices.Contains(all, text) {
		p.refuse(field, fmt.Sprintf("%.80q is not possible here", text), "write "+strings.Join(all, " or "))
	}
}

func ingress(p part) {
	for _, tls := range p.in("spec").each("tls") {
		tls.hosts("hosts")
	}
	for _, rule := range p.in("spec").each("rules") {
		for _, path := range rule.in("http").each("paths") {
			ingressPath(path)
		}
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
	directions, _ := spec.fields["policyTypes"].([]any)
	if len(directions) > 0 && !slices.Contains(directions, any("Egress")) && spec.has("egress") {
		spec.refuse("egress", "policyTypes has no Egress, so these rules limit nothing", "add Egress to policyTypes")
	}
	for _, way := range []struct{ direction, peers string }{{"ingress", "from"}, {"egress", "to"}} {
		for _, rule := range spec.each(way.direction) {
			for _, peer := range rule.each(way.peers) {
				policyPeer(peer)
			}
			for _, port := range rule.each("ports") {
				policyPort(port)
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
