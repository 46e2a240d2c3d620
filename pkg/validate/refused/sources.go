package refused

import (
	"fmt"
	"strings"
)

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
