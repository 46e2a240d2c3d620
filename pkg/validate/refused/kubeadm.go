package refused

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// kubeadmConfig judges the bootstrap configuration of a machine, as the bootstrap provider's webhook, cloud-init and the kubelet do.
func kubeadmConfig(spec part) {
	for _, way := range []string{"initConfiguration", "joinConfiguration"} {
		node := spec.in(way).in("nodeRegistration")
		node.taintsOnce("taints")
		for _, taint := range node.each("taints") {
			taint.oneOf("effect", "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
	}
	spec.networkNames("clusterConfiguration", "networking", "dnsDomain")
	kubeadmForms(spec)
	var paths []string
	for _, file := range spec.each("files") {
		nodeFile(file, &paths)
	}
	var users []string
	for _, user := range spec.each("users") {
		user.together("passwd", "passwdFrom")
		user.once("user", &users, 0)
	}
	ignition(spec)
	for _, disk := range spec.in("diskSetup").each("partitions") {
		sum := 0.0
		for _, partition := range disk.each("diskLayout") {
			percent, _ := partition.number("percentage")
			sum += percent
		}
		if sum > 100 {
			disk.refuse("diskLayout", fmt.Sprintf("its partitions take %v percent of the disk", sum), "let them be 100 together at most")
		}
	}
}

// ignition reports fields that only the other format of bootstrap data has.
func ignition(spec part) {
	const hint, cannot = "take it away, or write format: cloud-config", "ignition, which format names, cannot do that"
	format, ok := spec.known("format")
	if format != "ignition" {
		if spec.has("ignition") && (ok || !spec.given("format")) {
			spec.refuse("ignition", "it needs format: ignition", "write format: ignition")
		}
		return
	}
	for _, file := range spec.each("files") {
		if encoding := file.word("encoding"); encoding == "gzip" || encoding == "gzip+base64" {
			file.refuse("encoding", cannot, "write base64, or no encoding")
		}
		file.absolute("path") // cloud-init writes others below /
	}
	for _, user := range spec.each("users") {
		if user.has("inactive") {
			user.refuse("inactive", cannot, hint)
		}
	}
	if spec.has("bootCommands") {
		spec.refuse("bootCommands", cannot, "write preKubeadmCommands")
	}
	for _, disk := range spec.in("diskSetup").each("filesystems") {
		for _, field := range []string{"replaceFS", "partition"} {
			if disk.has(field) {
				disk.refuse(field, cannot, hint)
			}
		}
	}
}

// kubeadmOfControlPlane judges the kubeadm configuration of a control plane: the validity of its certificates, its etcd and its time
// limits.
func kubeadmOfControlPlane(spec part) {
	config := spec.in("kubeadmConfigSpec")
	kubeadmConfig(config)
	spec.randomNames()
	cluster := config.in("clusterConfiguration")
	if cluster.in("etcd").has("external") && cluster.in("etcd").has("local") {
		cluster.in("etcd").together("local", "external")
	}
	const usualCA = 3650
	const days = "certificateValidityPeriodDays"
	validity, given := cluster.number(days)
	ca, ok := cluster.number("caCertificateValidityPeriodDays")
	if !ok || ca == 0 {
		ca = usualCA
	}
	if given && validity > ca {
		cluster.refuse(days, fmt.Sprintf("%v is more than that of the certificate authority, which is %v", validity, ca),
			"let it be at most caCertificateValidityPeriodDays")
	}
	for _, before := range []part{spec.in("rollout").in("before"), spec.in("rolloutBefore")} {
		if n, ok := before.number("certificatesExpiryDays"); ok && given && validity > 0 && n >= validity {
			before.refuse("certificatesExpiryDays", fmt.Sprintf("%v is not less than %s, which is %v", n, days, validity),
				"let it be less: machines would be replaced without an end")
		}
	}
	first, joins := config.in("initConfiguration").in("timeouts"), config.in("joinConfiguration").in("timeouts")
	const limit = "controlPlaneComponentHealthCheckSeconds"
	a, isFirst := first.number(limit)
	if b, isSecond := joins.number(limit); a != b || isFirst != isSecond {
		joins.refuse(limit, "it differs from that of initConfiguration.timeouts", "write the same number in both")
	}
}

// nodeFile judges a file that is written on a machine. paths are the paths of the files before it.
func nodeFile(file part, paths *[]string) {
	if path, ok := file.known("path"); ok {
		if slices.Contains(*paths, path) {
			file.refuse("path", fmt.Sprintf("there is a file %.120s already", path), "give each file a path of its own, or take one away")
		}
		*paths = append(*paths, path)
		if strings.HasSuffix(path, "/") {
			file.refuse("path", fmt.Sprintf("%.120q is a folder", path), "add the name of the file")
		}
	}
	if owner, ok := file.known("owner"); ok && !isOwner(owner) && !isFilledIn(owner) {
		file.refuse("owner", fmt.Sprintf("%.60q is no owner of a file", owner), "write user and group with a colon between, as in root:root")
	}
	if file.word("content") != "" {
		file.together("content", "contentFrom")
	}
	if mode, ok := file.known("permissions"); ok {
		if _, err := strconv.ParseUint(mode, 8, 12); err != nil && !isOctal(mode) {
			file.refuse("permissions", fmt.Sprintf("%.40q is no mode of a file", mode), `write it in octal digits and quotes, as in "0640"`)
		}
	}
}

// isOwner tells whether a text can be a user, a group, or both with a colon between. cloud-init takes white space around each away.
func isOwner(text string) bool {
	user, group, _ := strings.Cut(text, ":")
	return !strings.ContainsAny(strings.TrimSpace(user), " \t") && !strings.ContainsAny(strings.TrimSpace(group), " \t")
}

// isOctal tells whether a mode is in Python's notation, such as 0o640, which cloud-init also reads.
func isOctal(mode string) bool {
	_, err := strconv.ParseUint(mode, 0, 12)
	return err == nil && len(mode) > 2 && mode[:2] == "0o"
}

// networkNames reports a domain that is not valid for the cluster's DNS.
func (p part) networkNames(path ...string) {
	for _, field := range path[:len(path)-1] {
		p = p.in(field)
	}
	last := path[len(path)-1]
	if domain, ok := p.known(last); ok && len(validation.IsDNS1123Subdomain(domain)) > 0 {
		p.refuse(last, fmt.Sprintf("%.80q is no domain", domain), "write lower-case letters, digits, hyphens and dots, as in cluster.local")
	}
}
