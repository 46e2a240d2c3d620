package refused

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/distribution/reference"
)

// imageTag and imageDigest match the tags and digests of images.
var (
	imageTag    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// ociRepository judges the address of an OCIRepository, and what it takes from there. source-controller marks others as stalled.
func ociRepository(p part) {
	spec := p.in("spec")
	if address, ok := spec.known("url"); ok {
		if repository, isOCI := strings.CutPrefix(address, "oci://"); isOCI {
			spec.repository("url", repository)
		}
	}
	ref := spec.in("ref")
	if tag, ok := ref.known("tag"); ok && !imageTag.MatchString(tag) {
		hint := "write letters, digits, underscores, dots and hyphens"
		if strings.Contains(tag, "+") {
			hint = "a registry has a version with + as " + strings.ReplaceAll(tag, "+", "_")
		}
		ref.refuse("tag", fmt.Sprintf("%.80q is no tag", tag), hint)
	}
	if digest, ok := ref.known("digest"); ok && !imageDigest.MatchString(digest) {
		ref.refuse("digest", fmt.Sprintf("%.100q is no digest", digest),
			"write it as sha256:…, with 64 digits and letters a to f; a version goes under tag")
	}
}

// repository reports an address in a registry that has a tag or a digest, or that no registry has.
func (p part) repository(field, address string) {
	last := address[strings.LastIndex(address, "/")+1:]
	at := strings.IndexAny(last, "@:")
	_, err := reference.ParseNormalizedNamed(address)
	switch {
	case at >= 0 && len(last) < len(address):
		where := "remove it"
		if field == "url" {
			where = "write it under ref"
		}
		p.refuse(field, fmt.Sprintf("the address has a tag or a digest, %.80s", last[at:]), where)
	case err != nil:
		p.refuse(field, fmt.Sprintf("%.120q is no address in a registry: %.120v", address, err),
			"write lower-case letters, as in ghcr.io/acme/web")
	}
}
