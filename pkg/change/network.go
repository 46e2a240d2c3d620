package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/validate"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// maxManifest bounds how much of a file is read. validate refuses a larger file.
const maxManifest = 8 << 20

// ReadManifests reads the files for the folder of an add-on called name: a file, the YAML files below a folder, or with "-" standard
// input. If the folder has a kustomization.yaml, it reads all files, because that may refer to any. The paths of the result are relative
// to the folder. Errors: no files, files that cannot be applied as they are.
func ReadManifests(from, name string, stdin io.Reader) ([]manifest.File, error) {
	switch {
	case from == "-":
		content, err := within.All(stdin, "standard input", maxManifest)
		return oneManifest(content, err, name+".yaml")
	case strings.Contains(from, "://"):
		return nil, diag.Usage(fmt.Sprintf("`%s | %s`, and check the output", diag.ShellCommand("curl", "-fsSL", from), addFromStdin(name)),
			"--from takes a file, a folder or -")
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, diag.Wrap("read the manifests", err, "give --from a file or a folder that you can read, or - for standard input")
	}
	if info.IsDir() {
		return readManifestFolder(from, name)
	}
	short := filepath.Base(from)
	switch {
	case slices.Contains(layout.KustomizationNames(), short):
		return nil, diag.Usage("give --from the folder of the file", "%s alone is nothing to apply", from)
	case !isManifest(short):
		short = name + ".yaml"
	}
	content, err := within.Given(from, maxManifest)
	return oneManifest(content, err, short)
}

// oneManifest is the file called name with the content that was read, or not.
func oneManifest(content []byte, err error, name string) ([]manifest.File, error) {
	if err != nil {
		return nil, diag.Wrap("read the manifests", err, tooLargeHint(err))
	}
	if len(strings.TrimSpace(string(content))) == 0 {
		return nil, diag.Usage("give --from a file or a folder with the network's manifests, or pipe them in with --from -",
			"read the manifests: there are none")
	}
	return []manifest.File{{Path: name, Content: content}}, nil
}

func readManifestFolder(from, name string) ([]manifest.File, error) {
	all, large, err := readFolder(from)
	if err != nil {
		return nil, diag.Wrap("read the manifests", err, tooLargeHint(err))
	}
	own := false
	for i, f := range all {
		switch {
		case f.Path == "Chart.yaml":
			return nil, diag.Usage(fmt.Sprintf("`%s | %s`, with your values",
				diag.ShellCommand("helm", "template", name, from, "--include-crds", "--namespace", "kube-system"), addFromStdin(name)),
				"%s is a Helm chart: Flux can apply its output, and not the chart itself", from)
		case slices.Contains(layout.KustomizationNames(), f.Path):
			own, all[i].Path = true, "kustomization.yaml"
		}
	}
	if own && large != nil { // the kustomization.yaml may refer to it
		return nil, diag.Wrap("read the manifests", large, tooLargeHint(large))
	}
	if !own {
		all = slices.DeleteFunc(all, func(f manifest.File) bool { return !isManifest(f.Path) })
	}
	if len(all) == 0 {
		return nil, diag.Usage("give --from a folder with YAML files", "read the manifests: there are none in %s", from)
	}
	return all, nil
}

// readFolder reads the files below a folder, except for names that begin with a dot. A missing folder has no files. A manifest that is too
// large is an error. A too large file of another kind is left out, and large says so.
func readFolder(dir string) (all []manifest.File, large, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(entry.Name(), ".") || !entry.Type().IsRegular():
			return nil
		}
		content, err := within.Read(root, name, maxManifest)
		if errors.Is(err, within.ErrTooLarge) && !isManifest(name) {
			large = err
			return nil
		}
		all = append(all, manifest.File{Path: name, Content: content})
		return err
	})
	return all, large, err
}

// tooLargeHint is the hint for a file that is larger than what is read of it; none for another error.
func tooLargeHint(err error) string {
	if !errors.Is(err, within.ErrTooLarge) {
		return ""
	}
	return "split it into several files, or keep it out of the fleet repo"
}

func isManifest(name string) bool { return slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)) }

// judgeAddon checks a folder of manifests after an edit. Manifests that no cluster would accept are an error. judgeAddon adds a note for
// manifests that cannot be judged.
func judgeAddon(ctx context.Context, repo *fleetrepo.Repo, e *fleetrepo.Edit, folder string) error {
	there, _, err := readFolder(filepath.Join(repo.Dir, filepath.FromSlash(folder)))
	if err != nil {
		return fmt.Errorf("read %s: %w", folder, err)
	}
	var files []manifest.File
	for _, f := range there {
		f.Path = path.Join(folder, f.Path)
		if !slices.ContainsFunc(e.Changes.Files(), func(o manifest.File) bool { return o.Path == f.Path }) {
			files = append(files, f)
		}
	}
	for _, f := range e.Changes.Files() {
		if strings.HasPrefix(f.Path, folder+"/") {
			files = append(files, f)
		}
	}
	findings, err := validate.Addon(ctx, folder, files)
	if err != nil {
		return err
	}
	if findings.Err() != nil {
		return findings
	}
	for _, f := range findings {
		e.Notes = append(e.Notes, f.String())
	}
	return nil
}

// addFromStdin is the end of a pipeline that adds a network from standard input.
func addFromStdin(name string) string {
	return diag.ShellCommand("fleetctl", "cni", "add", name, "--from", "-")
}
