package fleetrepo

import (
	"bytes"

	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// sameText tells whether two texts are the same apart from the ends of their lines: Git for Windows writes files with CRLF that it keeps
// with LF, as .gitattributes can have every Git do.
func sameText(a, b []byte) bool {
	unix := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }
	return bytes.Equal(a, b) || bytes.Equal(unix(a), unix(b))
}

// writeText adds files to the changes, except for those that the repo has with the same text.
func (r *Repo) writeText(cs *manifest.ChangeSet, files ...manifest.File) {
	for _, f := range files {
		if there, err := r.read(f.Path); err != nil || !sameText(there, f.Content) {
			cs.Write(f)
		}
	}
}
