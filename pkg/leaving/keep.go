package leaving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// mostSnapshot is how many bytes a snapshot may have; one of a thousand clusters has some fifty million.
const mostSnapshot = 1 << 30

// keep writes to private files what nobody could find out afterwards. The run before this one may have kept it on a machine that is gone.
// So keep writes the files again, if this machine does not have them and the management cluster still has the objects.
func (d *detach) keep(ctx context.Context, detail func(string)) (err error) {
	if d.result.Snapshot, err = d.file(".yaml"); err != nil {
		return err
	}
	if d.begun != nil && d.begun.Phase == handover.PhaseFenced {
		return d.keepRest(ctx)
	}
	cluster, err := d.manager.ClusterObject(ctx, d.key)
	if err != nil {
		return err
	}
	detail("taking a snapshot of the Cluster API objects")
	content, objects, err := d.manager.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := d.write(content, objects, cluster.GetUID()); err != nil {
		return err
	}
	return d.keepKubeconfig(ctx)
}

// keepRest is keep for a run before which some of the objects may have been removed already.
func (d *detach) keepRest(ctx context.Context) error {
	rest, err := d.manager.Copies(ctx, d.begun.ID)
	if err != nil {
		return err
	}
	before, err := within.Named(d.result.Snapshot, mostSnapshot)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the snapshot of an earlier run: %w", err)
	}
	of := func(obj *unstructured.Unstructured) bool { return bytes.Contains(before, []byte(obj.GetUID())) }
	switch {
	case len(rest) > 0 && slices.ContainsFunc(rest, of): // an earlier run on this machine
	case len(rest) > 0:
		if err := d.writeRest(ctx, rest); err != nil {
			return err
		}
	case err != nil:
		d.result.Snapshot = ""
		d.Report.Warn("an earlier run (" + d.begun.By + ") has saved the kubeconfig and the objects of " + d.key.String() +
			", and has removed the objects: this machine does not have the files")
		return nil //nolint:nilerr // a snapshot that is not there is what the warning says
	}
	return d.keepKubeconfig(ctx)
}

// writeRest writes the snapshot with the objects that an earlier run has not removed.
func (d *detach) writeRest(ctx context.Context, rest []*unstructured.Unstructured) error {
	var content bytes.Buffer
	objects := 0
	for _, obj := range rest {
		key := kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
		err := d.client.Get(ctx, key, obj)
		if kube.IsAbsent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s %s for the snapshot: %w", obj.GetKind(), key, err)
		}
		text, err := kube.YAML(obj.Object)
		if err != nil {
			return fmt.Errorf("write %s %s into the snapshot: it cannot be encoded", obj.GetKind(), key)
		}
		content.WriteString("---\n")
		content.Write(text)
		objects++
	}
	d.Report.Warn("an earlier run (" + d.begun.By + ") has saved the objects on another machine, and may have removed some since: the " +
		"snapshot of this machine has the others")
	return d.write(content.Bytes(), objects, rest[0].GetUID())
}

// write writes the snapshot, which has an object with this UID. A snapshot without it is of an earlier cluster of the same
// name, and nothing else may hold the keys of that cluster: it stays, under another name.
func (d *detach) write(content []byte, objects int, uid types.UID) error {
	header := fmt.Sprintf("# %s of management cluster %s before cluster %s was detached\n", plain.Count(objects, "object"),
		d.opts.Target.Name, d.key)
	content = append([]byte(header), content...)
	file := d.result.Snapshot
	before, err := within.Named(file, mostSnapshot)
	if err == nil && !bytes.Contains(before, []byte(uid)) {
		ending := filepath.Ext(file)
		err = os.Rename(file, strings.TrimSuffix(file, ending)+time.Now().UTC().Format("-20060102T150405.000Z")+ending)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep the snapshot of an earlier detachment: %w", err)
	}
	if err := atomicfile.Write(file, content, 0o600); err != nil {
		return fmt.Errorf("keep a snapshot: %w", err)
	}
	return nil
}

// keepKubeconfig writes the kubeconfig of the cluster to its file. If an earlier run has removed it, the file of that run stays.
func (d *detach) keepKubeconfig(ctx context.Context) (err error) {
	file := d.opts.KubeconfigOut
	if file == "" {
		if file, err = d.file(".kubeconfig"); err != nil {
			return err
		}
	}
	kubeconfig, err := d.manager.WorkloadKubeconfig(ctx, d.key)
	if kube.IsAbsent(err) { // the cluster was never made, or an earlier run has removed it
		if _, err := os.Stat(file); err == nil && d.begun != nil {
			d.result.Kubeconfig = file
		}
		return nil
	}
	if err != nil {
		return err
	}
	d.result.Kubeconfig = file
	return kube.WriteKubeconfig(file, kubeconfig)
}

// file returns the path of a private file for data of the cluster. The file is in no folder of a management cluster, so
// it outlives the state of the management cluster.
func (d *detach) file(ending string) (string, error) {
	dir := filepath.Join(d.Store.Dir, "detached")
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return "", diag.Wrap("save the kubeconfig and the objects of "+d.key.String(), err,
			"point --state-dir or FLEETCTL_STATE_DIR at a folder that you can write")
	}
	_ = atomicfile.Sweep(dir) // what a killed run left, which has Secrets
	return filepath.Join(dir, strings.Join([]string{d.opts.Target.Name, d.key.Namespace, d.key.Name}, "-")+ending), nil
}
