package fleetrepo

import "github.com/fleetctl/fleetctl/pkg/manifest"

// writeText adds files to the changes, except for those that the repo has with the same text. A file with CRLF at the ends of all its lines
// keeps these ends.
func (r *Repo) writeText(cs *manifest.ChangeSet, files ...manifest.File) {
	for _, f := range files {
		there, err := r.read(f.Path)
		if err == nil && manifest.SameText(there, f.Content) {
			continue
		}
		if err == nil {
			f.Content = manifest.EndsOf(there, f.Content)
		}
		cs.Write(f)
	}
}
