package refused

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// kubeadmForms judges texts that no schema checks, and that kubeadm, the kubelet or cloud-init refuse on the machine.
func kubeadmForms(spec part) {
	cluster := spec.in("clusterConfiguration")
	server, etcd := cluster.in("apiServer"), cluster.in("etcd").in("local")
	server.certNames("certSANs")
	etcd.certNames("serverCertSANs")
	etcd.certNames("peerCertSANs")
	etcd.flags("extraArgs")
	for _, program := range []part{server, cluster.in("controllerManager"), cluster.in("scheduler")} {
		program.flags("extraArgs")
		for _, volume := range program.each("extraVolumes") {
			volume.absolute("hostPath")
		}
	}
	for _, way := range []string{"initConfiguration", "joinConfiguration"} {
		node := spec.in(way).in("nodeRegistration")
		node.flags("kubeletExtraArgs")
		node.runtimeSocket("criSocket")
		for _, taint := range node.each("taints") {
			taint.labelKey("key")
			taint.labelValue("value")
		}
	}
	for _, user := range spec.each("users") {
		userForms(user)
	}
	for i, server := range spec.in("ntp").texts("servers") {
		if strings.Contains(server, "://") {
			spec.in("ntp").refuse(fmt.Sprintf("servers[%d]", i), fmt.Sprintf("%.80q is no name of a server: it has a scheme", server),
				"write the name or the address alone")
		}
	}
}

// certNames reports what a certificate cannot have as a name, as kubeadm does.
func (p part) certNames(field string) {
	for i, name := range p.texts(field) {
		_, err := netip.ParseAddr(name)
		if err == nil || isFilledIn(name) || len(validation.IsDNS1123Subdomain(name)) == 0 ||
			len(validation.IsWildcardDNS1123Subdomain(name)) == 0 {
			continue
		}
		p.refuse(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%.80q is neither a name nor an address, and kubeadm takes nothing else", name),
			"write it without scheme, port and path, as in api.example.com or 192.0.2.10")
	}
}

// placeholder is a part of a text that Flux, cloud-init or a script fills in: ${NAME}, {{ name }}, {% if a %}, @@NAME@@ or __NAME__.
var placeholder = regexp.MustCompile(`\$|\{\{|\{%|@@|__[A-Za-z][A-Za-z0-9_]*__`)

// isFilledIn tells whether Flux, cloud-init or a script fills in a part of a text.
func isFilledIn(text string) bool { return placeholder.MatchString(text) }

// flags reports names of flags that no program has, and judges the labels of nodes. A field has a mapping, or in later versions a list.
func (p part) flags(field string) {
	all := p.in(field)
	for _, name := range all.names() {
		all.flag("["+name+"]", name)
		if name == "node-labels" {
			all.nodeLabels(name)
		}
	}
	for _, one := range p.each(field) {
		name := one.word("name")
		one.flag("name", name)
		if name == "node-labels" {
			one.nodeLabels("value")
		}
	}
}

func (p part) flag(field, name string) {
	switch {
	case isFilledIn(name):
	case strings.HasPrefix(name, "-"):
		p.refuse(field, fmt.Sprintf("%.60q begins with a dash, and kubeadm adds two of its own", name), "write "+strings.TrimLeft(name, "-"))
	case strings.ContainsAny(name, "= \t"):
		p.refuse(field, fmt.Sprintf("%.60q is no name of a flag", name), "write its name here, and what follows = as its value")
	}
}

// ownNodeLabels are the labels of Kubernetes' domains that a kubelet may give its node.
var ownNodeLabels = []string{
	"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type",
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// nodeLabels judges the labels that a kubelet gives its node. It does not start with others. A label without = has an empty value.
func (p part) nodeLabels(field string) {
	text, ok := p.known(field)
	if !ok || isFilledIn(text) {
		return
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		domain, _, _ := strings.Cut(key, "/")
		within := func(domains ...string) bool {
			return slices.ContainsFunc(domains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
		}
		switch {
		case pair == "":
		case len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0:
			p.refuse(field, fmt.Sprintf("%.80q is no label: the kubelet does not start with it", pair), "write NAME=VALUE, with commas between")
			return
		case strings.Contains(key, "/") && within("kubernetes.io", "k8s.io") && !within("kubelet.kubernetes.io", "node.kubernetes.io") &&
			!slices.Contains(ownNodeLabels, key):
			p.refuse(field, fmt.Sprintf("a kubelet may not give its node the label %.80s, and does not start with it", key),
				"use a domain of your own or node.kubernetes.io; Cluster API gives nodes a machine's labels of node-role.kubernetes.io")
			return
		}
	}
}

// runtimeSocket reports an address of the container runtime that kubeadm or the kubelet cannot use.
func (p part) runtimeSocket(field string) {
	text, ok := p.known(field)
	if !ok || isFilledIn(text) || strings.HasPrefix(text, "/") {
		return
	}
	const hint = "write it as unix:///run/containerd/containerd.sock"
	switch address, err := url.Parse(text); {
	case err != nil || address.Scheme == "":
		p.refuse(field, fmt.Sprintf("%.80q is no address of a socket", text), hint)
	case address.Scheme != "unix" && address.Scheme != "npipe":
		p.refuse(field, fmt.Sprintf("kubeadm takes sockets alone, and no %.20s://", address.Scheme), hint)
	case address.Scheme == "unix" && address.Host != "":
		p.refuse(field, fmt.Sprintf("%.80q has no absolute path", text), hint)
	}
}

// absolute reports a path that does not begin with /.
func (p part) absolute(field string) {
	if path, ok := p.known(field); ok && !isFilledIn(path) && !strings.HasPrefix(path, "/") && !isWindowsPath.MatchString(path) {
		p.refuse(field, fmt.Sprintf("%.80q is no absolute path", path), "write it from the top, as in /etc/"+strings.TrimPrefix(path, "etc/"))
	}
}

var isWindowsPath = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

// labelKey reports a text that is no key of a label, of a taint or the like.
func (p part) labelKey(field string) {
	if text, ok := p.known(field); ok && !isFilledIn(text) && len(validation.IsQualifiedName(text)) > 0 {
		p.refuse(field, fmt.Sprintf("%.80q is no key", text), "write letters, digits, hyphens and dots, as in dedicated or example.com/dedicated")
	}
}

func (p part) labelValue(field string) {
	if text, ok := p.known(field); ok && !isFilledIn(text) && len(validation.IsValidLabelValue(text)) > 0 {
		p.refuse(field, fmt.Sprintf("%.80q is no value of a taint", text), "write letters, digits, hyphens, underscores and dots, at most 63")
	}
}

// userForms judges the name of a user on a machine, and the user's keys.
func userForms(user part) {
	if name, ok := user.known("name"); ok && strings.ContainsAny(name, " \t:/") && !isFilledIn(name) {
		user.refuse("name", fmt.Sprintf("%.60q is no name of a user", name), "write lower-case letters, digits and hyphens")
	}
	for i, key := range user.texts("sshAuthorizedKeys") {
		if text := strings.TrimSpace(key); text != "" && !isFilledIn(text) && !strings.ContainsAny(text, " \t") {
			user.refuse(fmt.Sprintf("sshAuthorizedKeys[%d]", i),
				fmt.Sprintf("%.60q is no public key: the type of the key is missing, or the key", text),
				"write the content of the .pub file, as in ssh-ed25519 AAAA…")
		}
	}
}
