package fleetrepo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Network is a network for the pods of clusters: a folder of addons/cni.
type Network struct {
	Name string `json:"name"`
	// Flavours whose new clusters get the network, because their charts name it.
	Flavours []string `json:"flavours"`
	// Clusters that have the network according to their flux.yaml, as commands name them.
	Clusters []string `json:"clusters"`
}

// cniDir has a folder for each network.
func cniDir() string { return path.Dir(layout.CNIDir("x")) }

// Networks lists the folders of addons/cni, by name. Errors: a chart or a folder that cannot be read.
func (r *Repo) Networks() ([]Network, error) {
	names, err := r.folders(cniDir())
	if err != nil {
		return nil, err
	}
	all := make([]Network, 0, len(names))
	at := map[string]*Network{}
	for _, name := range names {
		all = append(all, Network{Name: name, Flavours: []string{}, Clusters: []string{}})
		at[name] = &all[len(all)-1]
	}
	for _, flavour := range r.Flavours() {
		ch, err := r.chart(flavour)
		if err != nil {
			return nil, err
		}
		if n := at[ch.annotations[CNIAnnotation]]; n != nil {
			n.Flavours = append(n.Flavours, flavour)
		}
	}
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	called := calledAmong(places)
	for _, p := range places {
		if n := at[r.networkOf(p)]; n != nil {
			n.Clusters = append(n.Clusters, called(p))
		}
	}
	for i := range all {
		all[i].Clusters = sortedSet(all[i].Clusters)
	}
	return all, nil
}

// NetworkNames are the names of all networks.
func (r *Repo) NetworkNames() []string {
	names, err := r.folders(cniDir())
	if err != nil {
		return nil
	}
	return names
}

// networkOf returns the network in a cluster's flux.yaml; "" if it has none, or cannot be read.
func (r *Repo) networkOf(p place) string {
	content, err := r.generated(path.Join(path.Dir(p.file), layout.FluxFile))
	if err != nil {
		return ""
	}
	documents, err := yamledit.Parse(content)
	if err != nil {
		return ""
	}
	for _, d := range documents {
		if name := networkIn(d); name != "" {
			return name
		}
	}
	return ""
}

// networkIn returns the network that a Flux object of a flux.yaml installs; "" if it installs something else.
func networkIn(object *yaml.Node) string {
	if text(yamledit.Find(object, "metadata", "labels", scaffold.FluxLabel)) != "cni" {
		return ""
	}
	return path.Base(text(yamledit.Find(object, "spec", "path")))
}

// giveNetwork decides the network of a cluster: the one that the user names in o, else the one that the cluster has, else the network of a
// new cluster. present is nil for a cluster without a flux.yaml.
func (r *Repo) giveNetwork(e *Edit, o, present *scaffold.ClusterOptions, ch *chart, name string) error {
	if present != nil && o.CNI == "" {
		if o.Flux != scaffold.FluxNone {
			o.CNI = present.CNI
		}
		return nil
	}
	network, note, err := r.networkFor(o.CNI, ch, o.Flux)
	if err != nil {
		return err
	}
	o.CNI = network
	if present != nil && present.CNI != "" && present.CNI != network {
		note = fmt.Sprintf("The network of cluster %s changes from %s to %s. Flux applies the new one and deletes the old one, and meanwhile "+
			"the cluster's pods have no network.", name, present.CNI, network)
	}
	if note != "" {
		e.Notes = append(e.Notes, note)
	}
	return nil
}

// networkFor returns the network of a new cluster: the requested one, otherwise the one that its chart names, otherwise
// the only one in the repo. note says what the user still has to do.
func (r *Repo) networkFor(asked string, ch *chart, flux scaffold.FluxMode) (name, note string, err error) {
	networks, err := r.folders(cniDir())
	if err != nil {
		return "", "", err
	}
	named := ch.annotations[CNIAnnotation]
	switch {
	case asked != "" && flux == scaffold.FluxNone:
		return "", "", diag.Usage("leave --cni out, or choose --flux own", "nothing puts the network %s on a cluster without Flux", asked)
	case asked != "" && !slices.Contains(networks, asked):
		return "", "", diag.Unknown("network", asked, networks, bringNetwork(asked))
	case asked != "" || named == "" || flux == scaffold.FluxNone:
		return asked, "", nil
	case named != CNIRequired && !slices.Contains(networks, named):
		return "", "", diag.Errorf(bringNetwork(named)+"; --cni takes another one",
			"%s names the network %s for its clusters, but %s does not have it",
			path.Join(layout.ChartsDir, ch.flavour, "Chart.yaml"), named, layout.CNIDir(named))
	case named != CNIRequired:
		return named, "", nil
	case len(networks) == 1:
		return networks[0], "", nil
	case len(networks) > 1:
		return "", "", diag.Usage("choose one with --cni: "+strings.Join(networks, ", ")+
			fmt.Sprintf("; `fleetctl cni add NAME --flavour %s` chooses one for all new clusters of the flavour", ch.flavour),
			"the fleet has several networks")
	}
	return "", "Its nodes become Ready when they have a network: use an image with a network, or add one with `fleetctl cni add` and " +
		"choose it with `--cni NAME`.", nil
}

// bringNetwork is a hint how to add a network to the repo.
func bringNetwork(name string) string {
	return fmt.Sprintf("`fleetctl cni add %s --from FILE` adds it", diag.ShellWord(name))
}

// NetworkOptions are the manifests of a network, and the flavours that use it.
type NetworkOptions struct {
	// Files are the network's manifests, by their paths in its folder. Empty means the existing manifests.
	Files []manifest.File
	// Flavours whose new clusters get the network.
	Flavours []string
}

// AddNetwork adds a network to addons/cni, and makes it the default of new clusters of the flavours, by an annotation in their charts. If
// the network exists, the given files replace files of the same name. Other files in its folder stay, even a kustomization.yaml. Existing
// clusters keep their network. Errors: a bad name, an unknown flavour, a flavour whose chart is not in the repo or that cannot run Flux.
func (r *Repo) AddNetwork(name string, o NetworkOptions) (*Edit, error) {
	if err := scaffold.CheckName("network", name, 63); err != nil {
		return nil, err
	}
	if name == CNIRequired {
		return nil, diag.Usage("call it after the program, such as calico",
			"%q in a chart means that a network has to be chosen: no network can have this name", name)
	}
	there := r.exists(layout.CNIDir(name))
	e := &Edit{Summary: "Add network " + name}
	switch {
	case len(o.Files) == 0 && !there:
		return nil, diag.Unknown("network", name, r.NetworkNames(), "give --from with a file or folder of its manifests")
	case len(o.Files) == 0 && len(o.Flavours) == 0:
		return nil, diag.Usage("give --from with its manifests, or --flavour", "there is nothing to do to network %s", name)
	case len(o.Files) == 0:
		e.Summary = "Choose network " + name
	case there:
		e.Summary = "Update network " + name
	}
	if len(o.Files) > 0 {
		if err := r.writeNetwork(e, name, o.Files); err != nil {
			return nil, err
		}
	}
	for _, flavour := range o.Flavours {
		if err := r.chooseNetwork(e, flavour, name); err != nil {
			return nil, err
		}
	}
	if len(o.Flavours) > 0 {
		e.Summary += " for new clusters of " + strings.Join(o.Flavours, ", ")
		e.Notes = append(e.Notes, fmt.Sprintf(
			"Existing clusters keep their network: `fleetctl cluster flux CLUSTER --cni %s` changes the network of one cluster.", name))
	} else if !there {
		e.Notes = append(e.Notes,
			fmt.Sprintf("`fleetctl cluster add … --cni %s` takes it; `fleetctl cni add %s --flavour FLAVOUR` makes it the network of a flavour.",
				name, name))
	}
	return e, nil
}

// writeNetwork writes the files of a network, and lists them in its kustomization.yaml.
func (r *Repo) writeNetwork(e *Edit, name string, files []manifest.File) error {
	dir := layout.CNIDir(name)
	e.Checks = append(e.Checks, AppliesManifests{dir})
	own, list := false, r.kustomizationIn(dir)
	var names []string
	for _, f := range files {
		if f.Path == kustomizationFile && list != "" { // two of them, under different names, would be one too many for kustomize
			f.Path = path.Base(list)
		}
		own = own || layout.IsKustomization(f.Path) && path.Dir(f.Path) == "."
		names = append(names, f.Path)
		e.Changes.Write(manifest.File{Path: path.Join(dir, f.Path), Content: f.Content})
	}
	left, err := r.besides(dir, names)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		e.Notes = append(e.Notes,
			fmt.Sprintf("These files of %s stay, although --from does not have them: %s. Delete the files of an older version, with "+
				"their lines in %s.", dir, strings.Join(left, ", "), path.Base(cmp.Or(list, kustomizationFile))))
	}
	if own {
		return nil
	}
	if list != "" {
		for _, f := range names {
			if err := r.listed(&e.Changes, dir, f, true); err != nil {
				return err
			}
		}
		return nil
	}
	made, err := scaffold.NetworkKustomization(name, sortedSet(names))
	if err != nil {
		return err
	}
	e.Changes.Write(made)
	return nil
}

// besides returns the files below a folder, by their paths in it, that are not among names. It ignores a kustomization.yaml.
func (r *Repo) besides(dir string, names []string) ([]string, error) {
	var left []string
	err := within.WalkDir(r.Dir, dir, func(file string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(file, dir+"/")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir():
			return err
		case !slices.Contains(layout.KustomizationNames(), name) && !slices.Contains(names, name):
			left = append(left, name)
		}
		return nil
	})
	return left, err
}

// chooseNetwork gives a network to new clusters of a flavour. The rest of the chart stays as it is.
func (r *Repo) chooseNetwork(e *Edit, flavour, name string) error {
	ch, err := r.chart(flavour)
	if err != nil {
		return err
	}
	switch {
	case ch.annotations[fluxAnnotation] == string(scaffold.FluxNone):
		return diag.Usage("leave it out", "a cluster of flavour %s cannot run Flux, which brings the network", flavour)
	case !ch.inRepo:
		return diag.Errorf("`fleetctl provider add` brings the charts of a provider along, `fleetctl cluster add` that of its flavour",
			"the repo has no chart %s/%s yet", layout.ChartsDir, flavour)
	}
	file := path.Join(layout.ChartsDir, flavour, "Chart.yaml")
	src, err := r.read(file)
	if err != nil {
		return err
	}
	if src, err = yamledit.Set(src, 0, yamledit.Path{"annotations", CNIAnnotation}, name); err != nil {
		return diag.Wrap("change "+yamledit.At(file, err), err, fmt.Sprintf("set the annotation %s: %s in an editor", CNIAnnotation, name))
	}
	e.Changes.Write(manifest.File{Path: file, Content: src})
	return nil
}
