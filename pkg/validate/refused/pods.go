package refused

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// pods judges the spec of pods. claims are the volumes that a StatefulSet makes for each pod.
func pods(spec part, claims []string) {
	volumes := slices.Clone(claims)
	for _, v := range spec.each("volumes") {
		v.once("volume", &volumes, len(claims))
		oneSource(v)
	}
	tolerations(spec)
	var names []string
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range spec.each(list) {
			c.once("container", &names, 0)
			container(c, volumes)
			security(spec, c)
		}
	}
}

// once reports a name that is in seen, and adds it to seen. It ignores the first entries of seen, as many as after says.
func (p part) once(what string, seen *[]string, after int) {
	name, ok := p.known("name")
	if !ok {
		return
	}
	if slices.Contains((*seen)[after:], name) {
		p.refuse("name", fmt.Sprintf("there is a %s %s already", what, name), "give each a name of its own")
	}
	*seen = append(*seen, name)
}

func container(c part, volumes []string) {
	c.image("image")
	for _, list := range []string{"volumeMounts", "volumeDevices"} {
		var paths []string
		for _, mount := range c.each(list) {
			mountPath(mount, &paths)
			if name, ok := mount.known("name"); ok && !slices.Contains(volumes, name) {
				mount.refuse("name", "there is no volume "+name, "name one of the volumes of the pod: "+strings.Join(volumes, ", "))
			}
		}
	}
	probes(c)
	resources(c.in("resources"))
	variables(c)
	containerPorts(c)
}

// sources are the fields with the source of a volume.
var sources = []string{
	"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "fc",
	"flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "persistentVolumeClaim",
	"photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret", "storageos", "vsphereVolume",
}

// oneSource reports a volume with two sources.
func oneSource(volume part) {
	first := ""
	for _, name := range volume.names() {
		switch {
		case !volume.given(name) || !slices.Contains(sources, name):
		case first == "":
			first = name
		default:
			volume.together(name, first)
			return
		}
	}
}

// mountPath judges the path of a mount. paths are the paths of the mounts before it.
func mountPath(mount part, paths *[]string) {
	mount.together("subPathExpr", "subPath")
	if at, ok := mount.known("mountPath"); ok {
		if slices.Contains(*paths, at) {
			mount.refuse("mountPath", "something is mounted at "+at+" already", "give each mount a path of its own")
		}
		*paths = append(*paths, at)
	}
	if below, ok := mount.known("subPath"); ok && (strings.HasPrefix(below, "/") || slices.Contains(strings.Split(below, "/"), "..")) {
		mount.refuse("subPath", fmt.Sprintf("%.80q is no path inside of the volume", below), "write it without / at its beginning and without ..")
	}
}

// ways are the fields with the action of a probe.
var ways = []string{"exec", "grpc", "httpGet", "tcpSocket"}

// oneWay reports a probe without exactly one action.
func oneWay(probe part) {
	first := ""
	for _, way := range ways {
		switch {
		case !probe.given(way):
		case first == "":
			first = way
		default:
			probe.together(way, first)
			return
		}
	}
	if first == "" && len(probe.fields) > 0 {
		probe.refuse("", "the probe does not say what to ask", "write "+strings.Join(ways, ", ")+" or take the probe away")
	}
}

// probes reports a probe of a named port that the container does not have, a probe without exactly one action, and a successThreshold above
// 1 of a probe that must have 1.
func probes(c part) {
	var ports []string
	for _, port := range c.each("ports") {
		ports = append(ports, port.word("name"))
	}
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		oneWay(c.in(name))
		if n, ok := c.in(name).number("successThreshold"); ok && n > 1 && name != "readinessProbe" {
			c.in(name).refuse("successThreshold", fmt.Sprintf("it is %v, and a %s takes 1 alone", n, name), "write 1, or take it away")
		}
		for _, way := range []string{"httpGet", "tcpSocket"} {
			at := c.in(name).in(way)
			if port, ok := at.known("port"); ok && !isNumber(port) && !slices.Contains(ports, port) {
				at.refuse("port", fmt.Sprintf("the container has no port called %.80q", port), "write the port's number, or name it under ports")
			}
		}
	}
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// resources judges what a container asks for: its names, its amounts, and requests that are more than their limits.
func resources(p part) {
	limits := p.in("limits")
	requests := p.in("requests")
	for _, amounts := range []part{limits, requests} {
		amounts.resourceNames()
		amounts.bytes("memory", "ephemeral-storage")
	}
	for _, name := range requests.names() {
		request, ok := requests.quantity(name)
		limit, limited := limits.quantity(name)
		if ok && limited && request.Cmp(limit) > 0 {
			requests.refuse(name, fmt.Sprintf("%s is more than the limit, which is %s", request.String(), limit.String()),
				"let the request be at most the limit")
		}
	}
}

// quantity returns the quantity in a field. ok is false if the field has none, or has a text that the schema refuses or that is too long to
// read.
func (p part) quantity(field string) (q resource.Quantity, ok bool) {
	text, ok := p.known(field)
	if n, is := p.number(field); is {
		text, ok = fmt.Sprint(n), true
	}
	if !ok || len(text) > 20 || strings.ContainsAny(text, "eE") && !strings.HasSuffix(text, "E") && !strings.HasSuffix(text, "Ei") {
		return q, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}
