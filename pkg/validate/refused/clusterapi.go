package refused

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// core are the checks of Cluster API's own kinds, by group and kind, as its webhooks make them.
var core = map[string]func(part){
	"cluster.x-k8s.io/Cluster":                          cluster,
	"cluster.x-k8s.io/ClusterClass":                     clusterClass,
	"cluster.x-k8s.io/MachineDeployment":                machineDeployment,
	"cluster.x-k8s.io/MachineSet":                       machineSet,
	"cluster.x-k8s.io/MachinePool":                      machinePool,
	"cluster.x-k8s.io/MachineDrainRule":                 drainRule,
	"addons.cluster.x-k8s.io/ClusterResourceSet":        func(p part) { p.in("spec").selectsSome("clusterSelector") },
	"cluster.x-k8s.io/MachineHealthCheck":               healthCheck,
	"bootstrap.cluster.x-k8s.io/KubeadmConfig":          func(p part) { kubeadmConfig(p.in("spec")) },
	"bootstrap.cluster.x-k8s.io/KubeadmConfigTemplate":  func(p part) { kubeadmConfig(p.in("spec").in("template").in("spec")) },
	"controlplane.cluster.x-k8s.io/KubeadmControlPlane": kubeadmControlPlane,
	"controlplane.cluster.x-k8s.io/KubeadmControlPlaneTemplate": func(p part) {
		kubeadmOfControlPlane(p.in("spec").in("template").in("spec"))
	},
}

// cluster judges the domain and the networks of a cluster. kubeadm would refuse them, long after the API server accepted the Cluster.
func cluster(p part) {
	spec := p.in("spec")
	spec.networkNames("clusterNetwork", "serviceDomain")
	endpoint(spec)
	network := spec.in("clusterNetwork")
	switch spec.in("controlPlaneRef").word("kind") {
	case "KubeadmControlPlane":
		oneOfEachFamily(network.in("services"))
		oneOfEachFamily(network.in("pods"))
		kubeadmNetworks(network.in("services"), network.in("pods"))
	case "AWSManagedControlPlane":
		eksServices(network.in("services"))
	}
}

func kubeadmNetworks(services, pods part) {
	const (
		mostServiceBits = 20 // of addresses
		leastServices   = 10
		leastPods       = 14
	)
	for field, prefix := range services.ranges("cidrBlocks") {
		switch addressBits := prefix.Addr().BitLen() - prefix.Bits(); {
		case addressBits > mostServiceBits:
			services.refuse(field, fmt.Sprintf("kubeadm takes no network of Services larger than /%d, and it is /%d",
				prefix.Addr().BitLen()-mostServiceBits, prefix.Bits()), "give it a smaller range")
		case addressBits < bits.Len(leastServices):
			services.refuse(field, fmt.Sprintf("kubeadm wants addresses for %d Services at least, and /%d has %d", leastServices, prefix.Bits(),
				1<<addressBits), "give it a larger range")
		}
	}
	for field, prefix := range pods.ranges("cidrBlocks") {
		if addressBits := prefix.Addr().BitLen() - prefix.Bits(); addressBits < bits.Len(leastPods) {
			pods.refuse(field, fmt.Sprintf("kubeadm wants addresses for %d pods at least, and /%d has %d", leastPods, prefix.Bits(),
				1<<addressBits), "give it a larger range")
		}
	}
}

func machineDeployment(p part) {
	spec := p.in("spec")
	workers(p, clusterLabel) // the webhook of MachineDeployments writes it into the selector and the template
	scaled(p)
	for _, update := range []part{spec.in("strategy").in("rollingUpdate"), spec.in("rollout").in("strategy").in("rollingUpdate")} {
		update.share("maxSurge")
		update.share("maxUnavailable")
		surge, given := update.number("maxSurge")
		if most, ok := update.number("maxUnavailable"); ok && given && most == 0 && surge == 0 {
			update.refuse("maxUnavailable", "it cannot be 0 where maxSurge is 0: no machine could ever be replaced",
				"let one of the two be at least 1")
		}
	}
	spec.in("remediation").share("maxInFlight")
	spec.in("strategy").in("remediation").share("maxInFlight")
	spec.randomNames()
}

func machineSet(p part) { workers(p) }

// workers judges the fields that MachineSets and MachineDeployments have in common, except the labels in filledIn.
func workers(p part, filledIn ...string) {
	spec := p.in("spec")
	selects(spec, filledIn...)
	spec.in("template").in("spec").bootstraps()
	spec.in("template").in("spec").machineForms()
}

func machinePool(p part) {
	scaled(p)
	machine := p.in("spec").in("template").in("spec")
	machine.bootstraps()
	machine.machineForms()
	if machine.has("taints") {
		machine.refuse("taints", "a MachinePool cannot have it", "name the taints in the bootstrap configuration")
	}
}

// bootstraps reports machines without bootstrap data, which never become nodes.
func (p part) bootstraps() {
	bootstrap := p.in("bootstrap")
	if len(p.fields) > 0 && p.given("bootstrap") && !bootstrap.given("configRef") && !bootstrap.given("dataSecretName") {
		p.refuse("bootstrap", "nothing says how these machines become nodes", "write configRef, or dataSecretName")
	}
}

// randomNames reports a naming template that would give all machines one name. An older version had another name for its field.
func (p part) randomNames() {
	for _, field := range []string{"machineNaming", "machineNamingStrategy"} {
		naming := p.in(field)
		if text, ok := naming.known("template"); ok && !randomPart.MatchString(text) {
			naming.refuse("template", "it has no {{ .random }}, so all machines would have one name", "add {{ .random }}")
		}
	}
}

var randomPart = regexp.MustCompile(`\{\{\s*\.random\s*\}\}`)

// selectsSome reports a selector that is set and selects nothing.
func (p part) selectsSome(field string) {
	selector := p.in(field)
	if p.given(field) && !selector.has("matchLabels") && !selector.has("matchExpressions") {
		p.refuse(field, "it selects nothing", "name labels of what it is for under matchLabels")
	}
}

// drainRule reports an order for pods that are not drained.
func drainRule(p part) {
	drain := p.in("spec").in("drain")
	if behavior := drain.word("behavior"); (behavior == "Skip" || behavior == "WaitCompleted") && drain.given("order") {
		drain.refuse("order", "with behavior "+behavior+" there is no order", "take it away, or write behavior: Drain")
	}
}

// share reports a value that is neither a number nor a percentage.
func (p part) share(field string) {
	text, ok := p.known(field)
	if ok && (!strings.HasSuffix(text, "%") || !isNumber(strings.TrimSuffix(text, "%")) || text == "%") {
		p.refuse(field, fmt.Sprintf("%.80q is neither a number nor a percentage", text), "write a number such as 1, or a text such as 40%")
	}
}

// The annotations with the limits of a pool for the cluster autoscaler.
const (
	leastNodes = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	mostNodes  = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
)

// scaled reports limits of a pool that the cluster autoscaler does not accept. It silently ignores such a pool.
func scaled(p part) {
	annotations := p.in("metadata").in("annotations")
	numbers := map[string]int{}
	for _, name := range []string{leastNodes, mostNodes} {
		text, ok := annotations.known(name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			annotations.refuse("["+name+"]", fmt.Sprintf("%.80q is no number of nodes", text), "write a number in quotes")
			return
		}
		numbers[name] = n
	}
	least, given := numbers[leastNodes]
	if most, ok := numbers[mostNodes]; ok && given && least > most {
		annotations.refuse("["+leastNodes+"]",
			fmt.Sprintf("the autoscaler's least number of nodes, %d, is more than its greatest, %d", least, most),
			"let it be at most "+mostNodes)
	}
}

func healthCheck(p part) {
	spec := p.in("spec")
	spec.selectsSome("selector")
	for _, list := range []string{"unhealthyConditions", "unhealthyNodeConditions"} {
		for _, condition := range append(spec.each(list), spec.in("checks").each(list)...) {
			condition.oneOf("status", "True", "False", "Unknown")
			condition.duration("timeout")
		}
	}
	spec.share("maxUnhealthy")
	spec.in("remediation").in("triggerIf").share("unhealthyLessThanOrEqualTo")
	const tooShort, hint = "a node that is given less than 30 seconds to start never does", "write at least 30 seconds"
	spec.duration("nodeStartupTimeout")
	if text, ok := spec.known("nodeStartupTimeout"); ok {
		if d, err := time.ParseDuration(text); err == nil && d != 0 && d < 30*time.Second {
			spec.refuse("nodeStartupTimeout", tooShort, hint)
		}
	}
	checks := spec.in("checks")
	if n, ok := checks.number("nodeStartupTimeoutSeconds"); ok && n > 0 && n < 30 {
		checks.refuse("nodeStartupTimeoutSeconds", tooShort, hint)
	}
}

func kubeadmControlPlane(p part) {
	spec := p.in("spec")
	kubeadmOfControlPlane(spec)
	replicas, counted := spec.number("replicas")
	etcd := spec.in("kubeadmConfigSpec").in("clusterConfiguration").in("etcd")
	switch {
	case counted && replicas <= 0:
		spec.refuse("replicas", "a control plane has at least one node", "write 1, 3 or 5")
	case counted && int(replicas)%2 == 0 && !etcd.has("external"):
		spec.refuse("replicas", fmt.Sprintf("%v is even, and etcd runs on the nodes of the control plane", replicas), "write 1, 3 or 5")
	}
	for _, update := range []part{
		spec.in("rolloutStrategy").in("rollingUpdate"), spec.in("rollout").in("strategy").in("rollingUpdate"),
	} {
		surge, ok := update.number("maxSurge")
		switch {
		case ok && surge != 0 && surge != 1:
			update.refuse("maxSurge", fmt.Sprintf("it is %v, and a control plane takes 0 or 1", surge),
				"write 1, or 0 to replace nodes in their place")
		case ok && surge == 0 && counted && replicas < 3:
			update.refuse("maxSurge", "with 0, a control plane needs at least 3 nodes", "write 1")
		}
	}
}
