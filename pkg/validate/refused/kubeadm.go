package refused

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// kubeadmConfig judges what a machine is made of by kubeadm, as the bootstrap provider's webhook, cloud-init and the kubelet do.
func kubeadmConfig(spec part) {
	for _, way := range []string{"initConfiguration", "joinConfiguration"} {
		for _, taint := range spec.in(way).in("nodeRegistration").each("taints") {
			taint.oneOf("effect", "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
	}
	spec.networkNames("clusterConfiguration", "networking", "dnsDomain")
	var paths []string
	for _, file := range spec.each("files") {
		nodeFile(file, &paths)
	}
	for _, user := range spec.each("users") {
		user.together("passwd", "passwdFrom")
	}
}

// nodeFile judges a file that is written on a machine. paths are those of the files before it.
func nodeFile(file part, paths *[]string) {
	if path, ok := file.known("path"); ok {
		if slices.Contains(*paths, path) {
			file.refuse("path", fmt.Sprintf("there is a file %.120s already", path), "give each file a path of its own, or take one away")
		}
		*paths = append(*paths, path)
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

// isOctal tells of a mode in the way that Python writes it, such as 0o640, which cloud-init reads, too.
func isOctal(mode string) bool {
	_, err := strconv.ParseUint(mode, 0, 12)
	return err == nil && len(mode) > 2 && mode[:2] == "0o"
}

// networkNames reports a domain that the cluster's DNS could not have.
func (p part) networkNames(path ...string) {
	for _, field := range path[:len(path)-1] {
		p = p.in(field)
	}
	last := path[len(path)-1]
	if domain, ok := p.known(last); ok && len(validation.IsDNS1123Subdomain(domain)) > 0 {
		p.refuse(last, fmt.Sprintf("%.80q is no domain", domain), "write lower-case letters, digits, hyphens and dots, as in cluster.local")
	}
}
