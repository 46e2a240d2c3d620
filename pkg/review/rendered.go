package review

import (
	"bytes"
	"encoding/gob"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// rendered is a render.Result on its way from one process to another, where an object that a release points to stays the same object.
type rendered render.Result

// sent is how it is written.
type sent struct {
	Objects        []*render.Object
	Kustomizations []*render.Kustomization
	Releases       []sentRelease
	Findings       diag.Findings
}

// sentRelease has its object's number, or -1 and the object where it is not among the others.
type sentRelease struct {
	Release render.Release
	Object  int
}

// GobEncode implements gob.GobEncoder.
func (r *rendered) GobEncode() ([]byte, error) {
	s := sent{Objects: r.Objects, Kustomizations: r.Kustomizations, Findings: r.Findings}
	number := map[*render.Object]int{}
	for i, o := range r.Objects {
		number[o] = i
	}
	for _, release := range r.Releases {
		one := sentRelease{*release, -1}
		if i, ok := number[release.Object]; ok {
			one.Release.Object, one.Object = nil, i
		}
		s.Releases = append(s.Releases, one)
	}
	var text bytes.Buffer
	err := gob.NewEncoder(&text).Encode(s)
	return text.Bytes(), err
}

// GobDecode implements gob.GobDecoder.
func (r *rendered) GobDecode(text []byte) error {
	var s sent
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&s); err != nil {
		return err
	}
	r.Objects, r.Kustomizations, r.Findings = s.Objects, s.Kustomizations, s.Findings
	for i := range s.Releases {
		one := &s.Releases[i]
		if one.Object >= 0 && one.Object < len(r.Objects) {
			one.Release.Object = r.Objects[one.Object]
		}
		r.Releases = append(r.Releases, &one.Release)
	}
	return nil
}
