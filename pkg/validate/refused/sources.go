package refused

import (
	"fmt"
	"regexp"
	"strings"
)

// gitRepository reports an ssh address without a Secret: source-controller has no key of its own.
func gitRepository(p part) {
	spec := p.in("spec")
	if strings.HasPrefix(spec.word("url"), "ssh://") && !spec.given("secretRef") {
		spec.refuse("url", "an ssh address needs a key, and there is no secretRef",
			"name a Secret with identity and known_hosts under secretRef, or write an address with https://")
	}
}

// helmRelease reports a name that is longer than the names of Helm's releases.
func helmRelease(p part) {
	const longest = 53
	spec := p.in("spec")
	if name, ok := spec.known("releaseName"); ok && len(name) > longest {
		spec.refuse("releaseName", fmt.Sprintf("it has %d characters, and Helm takes %d", len(name), longest), "write a shorter name")
	}
}

// imageRepository reports an address with a scheme. image-reflector-controller wants the name of an image.
func imageRepository(p part) {
	spec := p.in("spec")
	image, ok := spec.known("image")
	if !ok {
		return
	}
	if scheme, rest, has := strings.Cut(image, "://"); has {
		spec.refuse("image", fmt.Sprintf("%.20s:// is no part of an image's name", scheme), "write "+rest)
		return
	}
	spec.repository("image", image)
}

// imagePolicy reports a filter that is no regular expression.
func imagePolicy(p part) {
	filter := p.in("spec").in("filterTags")
	if pattern, ok := filter.known("pattern"); ok {
		if _, err := regexp.Compile(pattern); err != nil {
			filter.refuse("pattern", fmt.Sprintf("%.80q is no regular expression: %v", pattern, err), "correct it; Go's syntax counts")
		}
	}
}

// helmRepository judges whether the address of a HelmRepository fits its type. Otherwise source-controller marks the object as stalled.
func helmRepository(p part) {
	spec := p.in("spec")
	url, ok := spec.known("url")
	if !ok {
		return
	}
	isOCI, declared := strings.HasPrefix(url, "oci://"), spec.word("type") == "oci"
	switch {
	case isOCI && !spec.given("type"):
		spec.refuse("url", "a HelmRepository with an address of a registry needs a type", "write type: oci")
	case isOCI && spec.word("type") == "default":
		spec.refuse("type", "an address of a registry needs another type", "write type: oci")
	case declared && !isOCI && strings.HasPrefix(url, "http"):
		spec.refuse("url", fmt.Sprintf("%.120q is no address of a registry, which type: oci needs", url), "write oci://, or take type: oci away")
	}
}
