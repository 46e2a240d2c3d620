package refused

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
)

// image reports a text that is no reference of an image: the kubelet never starts such a container (InvalidImageName).
func (p part) image(field string) {
	text, ok := p.known(field)
	if !ok || isFilledIn(text) {
		return
	}
	scheme, rest, hasScheme := strings.Cut(text, "://")
	_, err := reference.ParseDockerRef(text)
	switch {
	case strings.ContainsAny(text, " \t\n"):
		p.refuse(field, fmt.Sprintf("%.80q is no image: it has a space", text), "remove the space")
	case hasScheme:
		p.refuse(field, fmt.Sprintf("%.20s:// is no part of an image's name", scheme), "write "+rest)
	case err != nil:
		p.refuse(field, fmt.Sprintf("%.120q is no image: %.120v", text, err), "write it as ghcr.io/acme/web:v1.0.0")
	}
}

// variables judges the variables of a container.
func variables(c part) {
	var names []string
	for _, variable := range c.each("env") {
		if variable.has("value") {
			variable.together("valueFrom", "value")
		}
		fieldVariable(variable)
		if name, ok := variable.known("name"); ok && len(validation.IsRelaxedEnvVarName(name)) > 0 {
			variable.refuse("name", fmt.Sprintf("%.60q is no name of a variable", name), "write its name alone, without =")
		}
		if c.object.Template == "" { // Helm sends such a list as it is, and Flux merges it by its keys
			variable.once("variable", &names, 0)
		}
	}
}

// containerPorts reports names of ports that are there twice. In objects that Flux itself applies it also reports numbers that are there
// twice: it merges the list by them.
func containerPorts(c part) {
	var names, numbers []string
	for _, port := range c.each("ports") {
		port.once("port", &names, 0)
		if name, ok := port.known("name"); ok {
			if wrong := validation.IsValidPortName(name); len(wrong) > 0 {
				port.refuse("name", fmt.Sprintf("%.60q is no name of a port: %s", name, wrong[0]),
					"write at most 15 lower-case letters, digits and hyphens")
			}
		}
		number, ok := port.number("containerPort")
		protocol := port.word("protocol")
		if protocol == "" {
			protocol = "TCP"
		}
		if text := fmt.Sprintf("%v/%s", number, protocol); ok && c.object.Template == "" {
			for _, before := range numbers {
				if before == text {
					port.refuse("containerPort", fmt.Sprintf("there is a port %s already", text), "take one of the two away")
				}
			}
			numbers = append(numbers, text)
		}
	}
}
