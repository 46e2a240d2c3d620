package review

import (
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// rendered is a render.Result for another process. An object that a release points to stays the same object. The
// encoding is written by hand, because gob takes as long as rendering a cached fleet.
type rendered struct{ render.Result }

// AppendBinary implements encoding.BinaryAppender.
func (r *rendered) AppendBinary(dst []byte) ([]byte, error) {
	size := len(dst) + 1<<12
	for _, o := range r.Objects {
		size += len(o.JSON) + 64
	}
	p := newPacker(size)
	p.out = append(p.out, dst...)
	number := make(map[*render.Object]int, len(r.Releases))
	for _, release := range r.Releases {
		number[release.Object] = -1
	}
	p.unsigned(uint64(len(r.Objects)))
	before := &render.Object{}
	for i, o := range r.Objects {
		if _, wanted := number[o]; wanted {
			number[o] = i
		}
		packObject(p, o, before)
		before = o
	}
	p.unsigned(uint64(len(r.Kustomizations)))
	for _, k := range r.Kustomizations {
		packKustomization(p, k)
	}
	p.unsigned(uint64(len(r.Releases)))
	for _, release := range r.Releases {
		packRelease(p, release, number[release.Object])
	}
	packFindings(p, r.Findings)
	return p.out, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The objects are parts of text.
func (r *rendered) UnmarshalBinary(text []byte) error {
	u := &unpacker{in: text}
	objects := make([]render.Object, u.atMost(render.MaxObjects))
	r.Objects = make([]*render.Object, len(objects))
	before := &render.Object{}
	for i := range objects {
		unpackObject(u, &objects[i], before)
		r.Objects[i], before = &objects[i], &objects[i]
	}
	r.Kustomizations = make([]*render.Kustomization, u.atMost(render.MaxObjects))
	for i := range r.Kustomizations {
		r.Kustomizations[i] = unpackKustomization(u)
	}
	r.Releases = make([]*render.Release, u.atMost(render.MaxObjects))
	for i := range r.Releases {
		r.Releases[i] = unpackRelease(u, r.Objects)
	}
	r.Findings = unpackFindings(u)
	return u.done()
}

// textsOf returns the texts of an object. Their number has to fit the bits that say which of them differ from the texts
// of the object before.
func textsOf(o *render.Object) [13]*string {
	return [...]*string{
		&o.APIVersion, &o.Kind, &o.Namespace, &o.Name, &o.Template, &o.GitSource, &o.ManagementCluster, &o.Environment, &o.Cluster,
		&o.Source.File, &o.Owner.Kind, &o.Owner.Namespace, &o.Owner.Name,
	}
}

// The bits after those of the texts.
const (
	suspendedBit = 1 << 13
	targetsBit   = 1 << 14
)

// packObject writes an object as its difference to the one before, because most fields do not differ.
func packObject(p *packer, o, before *render.Object) {
	own, theirs := textsOf(o), textsOf(before)
	bits := uint64(0)
	for i := range own {
		if *own[i] != *theirs[i] {
			bits |= 1 << i
		}
	}
	if o.Suspended {
		bits |= suspendedBit
	}
	if !slices.Equal(o.Targets, before.Targets) {
		bits |= targetsBit
	}
	p.unsigned(bits)
	for i := range own {
		if bits&(1<<i) != 0 {
			p.text(*own[i])
		}
	}
	if bits&targetsBit != 0 {
		p.texts(o.Targets)
	}
	p.number(o.Source.Line)
	p.bytes(o.JSON)
}

func unpackObject(u *unpacker, o, before *render.Object) {
	bits := u.unsigned()
	*o = *before
	for i, text := range textsOf(o) {
		if bits&(1<<i) != 0 {
			*text = u.text()
		}
	}
	o.Suspended = bits&suspendedBit != 0
	if bits&targetsBit != 0 {
		o.Targets = u.texts()
	}
	o.Source.Line, o.JSON = u.number(), u.bytes()
}

func packKustomization(p *packer, k *render.Kustomization) {
	packOwner(p, k.Owner)
	for _, s := range []string{k.Source.File, k.Path, k.GitSource, k.ManagementCluster, k.Environment, k.Cluster} {
		p.text(s)
	}
	p.number(k.Source.Line)
	p.texts(k.Targets)
	p.flag(k.Suspended)
	p.flag(k.Incomplete)
	p.unsigned(uint64(len(k.Unread)))
	for _, at := range k.Unread {
		p.text(at.File)
		p.number(at.Line)
	}
	p.texts(k.Unbuilt)
}

func unpackKustomization(u *unpacker) *render.Kustomization {
	k := &render.Kustomization{Owner: unpackOwner(u)}
	for _, s := range []*string{&k.Source.File, &k.Path, &k.GitSource, &k.ManagementCluster, &k.Environment, &k.Cluster} {
		*s = u.text()
	}
	k.Source.Line, k.Targets, k.Suspended, k.Incomplete = u.number(), u.texts(), u.flag(), u.flag()
	for range u.count() {
		k.Unread = append(k.Unread, render.Source{File: u.text(), Line: u.number()})
	}
	k.Unbuilt = u.texts()
	return k
}

// packRelease writes a release with the index of its object or, if the index is negative, with the object itself.
func packRelease(p *packer, r *render.Release, object int) {
	packOwner(p, r.Owner)
	for _, s := range []string{r.Chart, r.ReleaseName, r.ReleaseNamespace} {
		p.text(s)
	}
	p.flag(r.Rendered)
	p.number(object)
	if object < 0 {
		packObject(p, r.Object, &render.Object{})
	}
}

func unpackRelease(u *unpacker, objects []*render.Object) *render.Release {
	r := &render.Release{Owner: unpackOwner(u)}
	for _, s := range []*string{&r.Chart, &r.ReleaseName, &r.ReleaseNamespace} {
		*s = u.text()
	}
	r.Rendered = u.flag()
	switch at := u.number(); {
	case at < 0:
		r.Object = &render.Object{}
		unpackObject(u, r.Object, &render.Object{})
	case at < len(objects):
		r.Object = objects[at]
	default:
		u.fail()
	}
	return r
}

func packOwner(p *packer, o render.Owner) {
	p.text(o.Kind)
	p.text(o.Namespace)
	p.text(o.Name)
}

func unpackOwner(u *unpacker) (o render.Owner) {
	o.Kind, o.Namespace, o.Name = u.text(), u.text(), u.text()
	return o
}

func packFindings(p *packer, all diag.Findings) {
	p.unsigned(uint64(len(all)))
	for _, f := range all {
		for _, s := range []string{string(f.Severity), f.Rule, f.File, f.Summary, f.Hint, f.Gist} {
			p.text(s)
		}
		p.number(f.Line)
		p.number(f.Column)
	}
}

func unpackFindings(u *unpacker) diag.Findings {
	n := u.atMost(render.MaxFindings)
	if n == 0 {
		return nil
	}
	all := make(diag.Findings, n)
	for i := range all {
		f := &all[i]
		f.Severity = diag.Severity(u.text())
		for _, s := range []*string{&f.Rule, &f.File, &f.Summary, &f.Hint, &f.Gist} {
			*s = u.text()
		}
		f.Line, f.Column = u.number(), u.number()
	}
	return all
}
