package render

import (
	"maps"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// outcome is a built folder.
type outcome struct {
	objects  []*content
	findings diag.Findings
	// unread are the documents whose objects are missing because they cannot be read. Without a line, nothing of the file was read.
	unread []Source
	// unbuilt are the folders and files of which any objects may be missing.
	unbuilt []string
}

// nothing is the outcome for a folder or a file of which nothing is built.
func nothing(name string, findings diag.Findings) outcome {
	out := outcome{findings: findings}
	if unbuilt(findings) {
		out.unbuilt = []string{name}
	}
	return out
}

// add adds the outcome for another part of the folder.
func (o *outcome) add(more outcome) {
	o.objects, o.findings = append(slices.Clip(o.objects), more.objects...), append(slices.Clip(o.findings), more.findings...)
	o.unread, o.unbuilt = append(slices.Clip(o.unread), more.unread...), append(slices.Clip(o.unbuilt), more.unbuilt...)
}

// unreadIn returns the documents of files, each built alone, that have no objects because of their faults.
func unreadIn(findings diag.Findings) []Source {
	var out []Source
	for _, f := range findings {
		switch {
		case f.Severity != diag.SeverityError:
		case f.Rule == RuleSyntax:
			out = append(out, Source{f.File, f.Line})
		default:
			out = append(out, Source{File: f.File})
		}
	}
	return out
}

// mostApart is the most resources that are built one by one after they did not build together.
const mostApart = 300

// rest builds what can be built of a folder that does not build as a whole. Flux applies nothing of it, and the rest can still be checked.
// failed is the outcome of the whole folder. Where a process died of the folder, nothing of it is tried again.
func (b *builds) rest(files *closure, dir string, names []string, spec buildSpec, specText []byte, failed outcome) outcome {
	if slices.ContainsFunc(failed.findings, func(f diag.Finding) bool { return f.Rule == RuleLimits }) {
		return failed
	}
	if len(names) < 2 || !spec.perFile() || len(names) > mostApart {
		return b.without(files, dir, names, spec, failed)
	}
	var out outcome
	apart := names
	if read, faulty := b.readable(dir, names, spec); len(read) > 0 && len(faulty) > 0 {
		out, apart = b.whole(dir, read, spec, specText), faulty // together, because one may use a generated name of another
	}
	for _, name := range apart {
		at, one := folderOrFile(b.repo, dir, name)
		out.add(b.whole(at, one, spec, specText))
	}
	if out.findings.Err() == nil && len(out.unbuilt) == 0 { // they do not go together
		out.findings = failed.findings
	}
	return out
}

// readable parts the resources of a folder into those whose files can all be read, and the others.
func (b *builds) readable(dir string, names []string, spec buildSpec) (read, faulty []string) {
	for _, name := range names {
		at, one := folderOrFile(b.repo, dir, name)
		if len(b.gather(at, one, spec, nil).findings) == 0 {
			read = append(read, name)
		} else {
			faulty = append(faulty, name)
		}
	}
	return read, faulty
}

// folderOrFile returns what is built of a resource alone: its own folder, or the file from the folder that lists it.
func folderOrFile(r *repo, dir, name string) (string, []string) {
	if r.isDir(name) {
		return name, nil
	}
	return dir, []string{name}
}

// without builds a folder again that did not build, without the files that cannot be read. It returns failed, the outcome of the first try,
// if all files can be read.
func (b *builds) without(files *closure, dir string, names []string, spec buildSpec, failed outcome) outcome {
	unreadable, faults := files.unreadable()
	if len(faults) == 0 {
		return failed
	}
	out := outcome{findings: faults}
	for _, name := range slices.Sorted(maps.Keys(unreadable)) {
		b.read.Store(name, nil)
		out.unread = append(out.unread, Source{File: name})
	}
	if names != nil {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return unreadable[name] })
		if len(names) == 0 {
			return out
		}
	}
	left := b.gather(dir, names, spec, unreadable)
	if len(left.findings) > 0 {
		out.add(nothing(dir, left.findings))
		return out
	}
	before := left.changes(spec)
	objects, findings := b.run(dir, names, left, spec)
	findings = b.parts.addBuild(left, findings)
	out.objects, out.findings = before.of(objects), append(out.findings, left.left...)
	for _, f := range findings {
		switch {
		case f.Severity == diag.SeverityError: // kustomize tells one fault at a time, and this may be for want of what is left out
			out.unbuilt = []string{dir}
		case f.Rule != RulePatch: // which may be for an object that is left out
			out.findings = append(out.findings, f)
		}
	}
	return out
}

// unreadable returns the resources that cannot be read, and their faults.
func (c *closure) unreadable() (map[string]bool, diag.Findings) {
	out := map[string]bool{}
	var faults diag.Findings
	for _, name := range slices.Sorted(maps.Keys(c.resources)) {
		content, err := c.repo.read(name)
		if err != nil {
			continue // which is told with the name of who wants it
		}
		_, findings := parse(name, content)
		if findings.Err() != nil {
			out[name] = true
			faults = append(faults, findings...)
		}
	}
	return out, faults
}
