package embedded

import (
	"context"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// DefaultKubernetesVersion is the Kubernetes version of a new host, unless the caller names another one.
const DefaultKubernetesVersion = "v1.36.3"

// The images of the control plane, as Kubernetes publishes them.
const (
	etcdRepository              = "registry.k8s.io/etcd"
	apiServerRepository         = "registry.k8s.io/kube-apiserver"
	controllerManagerRepository = "registry.k8s.io/kube-controller-manager"

	// defaultEtcdTag is the etcd that kubeadm takes for the default version. Each etcd from 3.5 on works with each Kubernetes version here.
	defaultEtcdTag = "3.6.8-0"
)

// programImages are the references of the control plane's images.
type programImages struct {
	Etcd              string `json:"etcd,omitempty"`
	APIServer         string `json:"apiServer,omitempty"`
	ControllerManager string `json:"controllerManager,omitempty"`
}

func (i programImages) all() []string { return []string{i.Etcd, i.APIServer, i.ControllerManager} }

// chooseImages chooses the Kubernetes version and its images: the version that opts names, else the newest one in the archive, else the
// default.
func chooseImages(opts host.CreateOptions) (version string, chosen programImages) {
	var names []string
	if opts.NodeImage != nil {
		names = opts.NodeImage.Names()
	}
	version = opts.KubernetesVersion
	if version == "" {
		version = newestTag(names, apiServerRepository)
	}
	if version == "" {
		version = DefaultKubernetesVersion
	}
	version = "v" + strings.TrimPrefix(version, "v")
	etcd := newestTag(names, etcdRepository)
	if etcd == "" {
		etcd = defaultEtcdTag
	}
	return version, programImages{
		Etcd:              etcdRepository + ":" + etcd,
		APIServer:         apiServerRepository + ":" + version,
		ControllerManager: controllerManagerRepository + ":" + version,
	}
}

// Programs returns the programs of a control plane of the given Kubernetes version. "" is the default version.
func Programs(kubernetesVersion string) []host.Program {
	version, chosen := chooseImages(host.CreateOptions{KubernetesVersion: kubernetesVersion})
	etcd, _, _ := strings.Cut(defaultEtcdTag, "-")
	return []host.Program{
		{Name: "etcd", Version: "v" + etcd, Image: chosen.Etcd, Path: programPath + "etcd"},
		{Name: "kube-apiserver", Version: version, Image: chosen.APIServer, Path: programPath + "kube-apiserver"},
		{Name: "kube-controller-manager", Version: version, Image: chosen.ControllerManager, Path: programPath + "kube-controller-manager"},
	}
}

// newestTag is the highest version among the references to a repository; "" if there is none.
func newestTag(refs []string, repository string) string {
	var newest string
	var highest semver.Version
	for _, ref := range refs {
		tag, ok := strings.CutPrefix(ref, repository+":")
		if !ok {
			continue
		}
		if v, err := semver.ParseTolerant(tag); err == nil && (newest == "" || v.GT(highest)) {
			newest, highest = tag, v
		}
	}
	return newest
}

// LoadImages loads the archive's images that the store lacks. A nil archive has no images.
func (h *Host) LoadImages(ctx context.Context, archive host.ImageArchive, detail func(string)) error {
	if archive == nil {
		return nil
	}
	c, err := h.dir.readConfig()
	if err != nil {
		return err
	}
	return load(ctx, c.ImageDir, archive, archive.Names(), detail)
}

// loadPrograms loads the control plane's images from an archive that has them. The supervisor pulls the others.
func (h *Host) loadPrograms(ctx context.Context, c *config, opts host.CreateOptions) error {
	if c.Programs != nil || opts.NodeImage == nil {
		return nil
	}
	has := map[string]bool{}
	for _, name := range opts.NodeImage.Names() {
		has[name] = true
	}
	var refs []string
	for _, ref := range c.Images.all() {
		if has[ref] {
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	return load(ctx, c.ImageDir, opts.NodeImage, refs, opts.Detail)
}

// load puts images of an archive into the store in dir.
func load(ctx context.Context, dir string, archive host.ImageArchive, refs []string, detail func(string)) error {
	if len(refs) == 0 {
		return nil
	}
	store, err := images.Open(dir, images.Options{})
	if err != nil {
		return err
	}
	if detail != nil {
		detail("unpacking " + plain.Count(len(refs), "image"))
	}
	return store.Load(ctx, archive, refs...)
}

// programPath is the folder of the programs in the published images of Kubernetes and etcd. A program there may be a link to a binary
// that acts by the name that it is called with, so the link is not followed.
const programPath = "/usr/local/bin/"

// programs finds the control plane's programs in the store, and pulls the images that are not in it.
func (i programImages) programs(ctx context.Context, store *images.Store) (*controlplane.Programs, error) {
	var p controlplane.Programs
	group, ctx := errgroup.WithContext(ctx)
	for _, each := range []struct {
		ref, name string
		path      *string
	}{
		{i.Etcd, "etcd", &p.Etcd},
		{i.APIServer, "kube-apiserver", &p.APIServer},
		{i.ControllerManager, "kube-controller-manager", &p.ControllerManager},
	} {
		group.Go(func() error {
			image, err := store.Get(ctx, each.ref, images.Pull{})
			if err != nil {
				return diag.Wrap("get the control plane's image "+each.ref, err, diag.Hint(err))
			}
			if *each.path = image.File(programPath + each.name); *each.path == "" {
				return fmt.Errorf("image %s has no program %s", each.ref, programPath+each.name)
			}
			return nil
		})
	}
	return &p, group.Wait()
}
