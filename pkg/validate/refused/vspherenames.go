package refused

import (
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// vsphereOpen are words of templates that can take long, or make much text. Names do not need them.
var vsphereOpen = regexp.MustCompile(`\b(range|template|define|block|printf|print|println)\b`)

// vsphereNames judges the template of the names of virtual machines as validateVSphereVMNamingTemplate in CAPV's
// internal/webhooks/vspheremachinetemplate.go does, with the functions that its pkg/util/template.go has.
func vsphereNames(p part) {
	const longest, longestTemplate = 63, 500
	naming := p.in("namingStrategy")
	text, ok := naming.known("template")
	if !ok || !p.isTemplate() || len(text) > longestTemplate || vsphereOpen.MatchString(text) {
		return
	}
	const hint = `write it as "{{ .machine.name }}-vm"; it knows the functions trunc and trimSuffix`
	all := sprig.GenericFuncMap()
	known := map[string]any{"trimSuffix": all["trimSuffix"], "trunc": all["trunc"]}
	var name strings.Builder
	parsed, err := template.New("name").Funcs(known).Option("missingkey=error").Parse(text)
	if err == nil {
		err = parsed.Execute(&name, map[string]any{"machine": map[string]any{"name": "machine"}})
	}
	if err != nil {
		naming.refuse("template", "it is no template of a name: "+err.Error(), hint)
		return
	}
	made := name.String()
	if wrong := validation.IsDNS1123Subdomain(made[:min(len(made), longest)]); len(wrong) > 0 {
		naming.refuse("template", fmt.Sprintf("it makes a name such as %.63q, which no object can have", made), hint)
	}
}

// vsphereEndpoint reports a cluster whose API server has no address. The provider makes none, and kubeadm's control plane waits for it.
func vsphereEndpoint(p, cluster part) {
	if !p.in("controlPlaneEndpoint").given("host") && !cluster.in("controlPlaneEndpoint").given("host") {
		p.refuse("", "the API server has no address, and the provider makes none",
			"add controlPlaneEndpoint, with a free address that kube-vip or a load balancer of yours serves, and port 6443")
	}
}
