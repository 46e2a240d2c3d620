package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mount is a path in the container, and the path of its folder on this machine.
type mount struct{ path, folder string }

// mounts are sorted with the longest path first.
type mounts []mount

// rewrite returns the path on this machine for value, if value is a path at or below a mount.
func (m mounts) rewrite(value string) (string, bool) {
	clean := strings.TrimSuffix(value, "/")
	for _, each := range m {
		if clean == each.path || strings.HasPrefix(value, each.path+"/") {
			return each.folder + strings.TrimPrefix(clean, each.path), true
		}
	}
	return value, false
}

// leadsTo tells whether the link at path leads to one of the mounts.
func (m mounts) leadsTo(path string) bool {
	target, err := os.Readlink(path)
	return err == nil && slices.ContainsFunc(m, func(each mount) bool { return each.folder == target })
}

// volumes makes the folders of a pod's volumes below dir and keeps them up to date. Only an emptyDir keeps files that the program writes.
// It lasts as long as the Deployment.
type volumes struct {
	dir    string // of the Deployment
	src    *sources
	pod    podInfo
	tokens func(ctx context.Context, audience string, seconds int64) ([]byte, error)
}

// make returns the container's mounts.
func (v *volumes) make(ctx context.Context, spec *corev1.PodSpec, env map[string]string) (mounts, error) {
	folders := map[string]volumeFolder{}
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		folder, err := v.one(ctx, volume, &spec.Containers[0])
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
		folders[volume.Name] = volumeFolder{folder, volume.EmptyDir != nil || volume.HostPath != nil}
	}
	return v.place(&spec.Containers[0], folders, env)
}

// one makes one volume and returns the path of its folder.
func (v *volumes) one(ctx context.Context, volume *corev1.Volume, c *corev1.Container) (string, error) {
	if volume.HostPath != nil {
		return volume.HostPath.Path, makeHostPath(volume.HostPath) // this machine is the host
	}
	folder := filepath.Join(v.dir, "volumes", volume.Name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	if volume.EmptyDir != nil {
		return folder, nil
	}
	files, err := v.files(ctx, volume, c)
	if err != nil {
		return "", err
	}
	return folder, writeAtomically(folder, files)
}

// makeHostPath makes the folder or file of a hostPath volume of the types DirectoryOrCreate and FileOrCreate.
func makeHostPath(h *corev1.HostPathVolumeSource) error {
	if h.Type == nil {
		return nil
	}
	switch *h.Type {
	case corev1.HostPathDirectoryOrCreate:
		return os.MkdirAll(h.Path, 0o700)
	case corev1.HostPathFileOrCreate:
		file, err := os.OpenFile(h.Path, os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return nil
}

// files returns the content of a volume whose files come from the API server.
func (v *volumes) files(ctx context.Context, volume *corev1.Volume, c *corev1.Container) (map[string][]byte, error) {
	files := map[string][]byte{}
	switch {
	case volume.Secret != nil:
		ref := objectRef{"Secret", v.pod.Namespace, volume.Secret.SecretName}
		return files, v.addObject(ctx, files, ref, volume.Secret.Items, isTrue(volume.Secret.Optional))
	case volume.ConfigMap != nil:
		ref := objectRef{"ConfigMap", v.pod.Namespace, volume.ConfigMap.Name}
		return files, v.addObject(ctx, files, ref, volume.ConfigMap.Items, isTrue(volume.ConfigMap.Optional))
	case volume.DownwardAPI != nil:
		return files, v.addDownward("volumes["+volume.Name+"].downwardAPI", files, volume.DownwardAPI.Items, c)
	}
	for _, s := range volume.Projected.Sources {
		if err := v.addProjection(ctx, "volumes["+volume.Name+"].projected", files, s, c); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (v *volumes) addProjection(
	ctx context.Context, field string, files map[string][]byte, s corev1.VolumeProjection, c *corev1.Container,
) error {
	switch {
	case s.Secret != nil:
		return v.addObject(ctx, files, objectRef{"Secret", v.pod.Namespace, s.Secret.Name}, s.Secret.Items, isTrue(s.Secret.Optional))
	case s.ConfigMap != nil:
		ref := objectRef{"ConfigMap", v.pod.Namespace, s.ConfigMap.Name}
		return v.addObject(ctx, files, ref, s.ConfigMap.Items, isTrue(s.ConfigMap.Optional))
	case s.DownwardAPI != nil:
		return v.addDownward(field+".downwardAPI", files, s.DownwardAPI.Items, c)
	}
	seconds := int64(3600)
	if s.ServiceAccountToken.ExpirationSeconds != nil {
		seconds = *s.ServiceAccountToken.ExpirationSeconds
	}
	token, err := v.tokens(ctx, s.ServiceAccountToken.Audience, seconds)
	files[s.ServiceAccountToken.Path] = token
	return err
}

func (v *volumes) addObject(ctx context.Context, files map[string][]byte, ref objectRef, items []corev1.KeyToPath, optional bool) error {
	data, err := v.src.get(ctx, ref, optional)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		maps.Copy(files, data)
		return nil
	}
	for _, item := range items {
		content, ok := data[item.Key]
		if ok {
			files[item.Path] = content
		} else if !optional {
			return &missingError{ref, item.Key}
		}
	}
	return nil
}

func (v *volumes) addDownward(field string, files map[string][]byte, items []corev1.DownwardAPIVolumeFile, c *corev1.Container) error {
	for _, item := range items {
		var value string
		var err error
		if item.FieldRef != nil {
			value, err = v.pod.field(field+"["+item.Path+"]", item.FieldRef)
		} else {
			value, err = resourceValue(field+"["+item.Path+"]", c, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		files[item.Path] = []byte(value)
	}
	return nil
}

// volumeFolder is the folder of a volume. A subPath of a writable volume may be missing, and is made then. A subPath of a Secret must
// exist.
type volumeFolder struct {
	path     string
	writable bool
}

// rootDir, in a Deployment's folder, stands for a container's root folder. It has the mounts under their paths.
const rootDir = "fs"

// place makes a link to each mounted folder, at the mount's path below rootDir. TMPDIR is tmp in rootDir, so a program finds a mount below
// /tmp in its folder for temporary files.
func (v *volumes) place(c *corev1.Container, folders map[string]volumeFolder, env map[string]string) (mounts, error) {
	root := filepath.Join(v.dir, rootDir)
	var all mounts
	for _, m := range c.VolumeMounts {
		volume, ok := folders[m.Name]
		if !ok {
			return nil, fmt.Errorf("volume mount %s: there is no such volume", m.Name)
		}
		folder, sub := volume.path, m.SubPath
		if m.SubPathExpr != "" {
			sub = expand(m.SubPathExpr, env)
		}
		if sub != "" {
			if !filepath.IsLocal(sub) {
				return nil, fmt.Errorf("spec.template.spec.%s.volumeMounts[%s].subPath: %q leads out of the volume; name a path inside it",
					containerField(c), m.Name, sub)
			}
			folder = filepath.Join(folder, sub)
			if err := volume.make(folder); err != nil {
				return nil, fmt.Errorf("volume mount %s: %w", m.Name, err)
			}
		}
		all = append(all, mount{path.Clean(m.MountPath), folder})
	}
	// Make the links of parents first. Lookups need the longest path first.
	slices.SortFunc(all, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	for _, m := range all {
		if err := all.link(root, m); err != nil {
			return nil, fmt.Errorf("volume mount at %s: %w", m.path, err)
		}
	}
	slices.Reverse(all)
	return all, os.MkdirAll(filepath.Join(root, "tmp"), 0o700)
}

// make makes a folder in the volume if it is missing, as the kubelet does.
func (v volumeFolder) make(folder string) error {
	if _, err := os.Stat(folder); !v.writable || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.MkdirAll(folder, 0o700)
}

// link makes the link for one mount. It makes none inside the folder of another mount.
func (m mounts) link(root string, one mount) error {
	at := filepath.Join(root, filepath.FromSlash(one.path))
	for dir := filepath.Dir(at); len(dir) > len(root); dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if m.leadsTo(dir) {
			return nil
		}
		if err := os.Remove(dir); err != nil { // a link to the image's folder, or to a mount of an earlier version
			return err
		}
	}
	return linkTo(at, one.folder)
}

// linkTo makes a link to target at the path at. It replaces a link or a folder of an earlier version.
func linkTo(at, target string) error {
	switch there, err := os.Readlink(at); {
	case err == nil && there == target:
		return nil
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.Symlink(target, at)
}
