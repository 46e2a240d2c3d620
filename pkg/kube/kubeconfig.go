package kube

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ownerExtension marks the contexts, clusters and users of a kubeconfig that fleetctl wrote; only these are ever removed.
const ownerExtension = "fleetctl.dev/owned"

// lockMark is the content of a lock file that fleetctl made.
const lockMark = "fleetctl"

// WriteKubeconfig writes kubeconfig to path, readable by its owner only, whole or not at all. Missing folders are made,
// private, too.
func WriteKubeconfig(path string, kubeconfig []byte) error {
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return diag.Wrap("write kubeconfig", err, "")
	}
	return diag.Wrap("write kubeconfig "+path, atomicfile.Write(path, kubeconfig, 0o600), "")
}

// ClusterName is what a kubeconfig calls the cluster of its current context; "" where it has none.
func ClusterName(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return ""
	}
	return config.Contexts[config.CurrentContext].Cluster
}

// CurrentContext is the name of a kubeconfig's current context; "" where it has none.
func CurrentContext(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// Reach is what a kubeconfig has whoever uses it do on their own machine, beside connecting to a server. One that somebody else wrote is not to
// have any: a token file's content goes to the server that the same kubeconfig names.
type Reach struct {
	// Commands are run for a user's credentials.
	Commands []string
	// Files are read: tokens, certificates and keys, by their paths as they stand in the kubeconfig.
	Files []string
}

// Text says it in words; "" where there is none.
func (r Reach) Text() string {
	switch {
	case len(r.Commands) > 0:
		return "runs a command: " + r.Commands[0]
	case len(r.Files) > 0:
		return "has a file read: " + r.Files[0]
	}
	return ""
}

// ReachOf reads what a kubeconfig reaches, whichever of its contexts is the current one.
func ReachOf(kubeconfig []byte) (Reach, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return Reach{}, diag.Wrap("read kubeconfig", err, "")
	}
	var r Reach
	add := func(names ...string) {
		r.Files = append(r.Files, slices.DeleteFunc(names, func(name string) bool { return name == "" })...)
	}
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		user := config.AuthInfos[name]
		if user.Exec != nil {
			r.Commands = append(r.Commands, cmp.Or(user.Exec.Command, "one without a name"))
		}
		if user.AuthProvider != nil { // some of which run commands, or read files
			r.Commands = append(r.Commands, "the authentication provider "+user.AuthProvider.Name)
		}
		add(user.TokenFile, user.ClientCertificate, user.ClientKey)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Clusters)) {
		add(config.Clusters[name].CertificateAuthority)
	}
	return r, nil
}

// MergeKubeconfig puts the current context of kubeconfig into the file at path under name (context, cluster and user alike),
// marks it as fleetctl's own and makes it the current context. All else in the file stays. An entry
// of that name that is not ours is an error. Others who take kubectl's lock wait for us, and we for them, until ctx ends.
func MergeKubeconfig(ctx context.Context, path, name string, kubeconfig []byte) error {
	return mergeKubeconfig(ctx, path, name, "", kubeconfig)
}

// MergeKubeconfigOf is MergeKubeconfig for a cluster whose name others choose, and that several may have: an entry of that name which fleetctl made for
// another cluster than of is an error as well. Whoever uses that context would talk to a stranger.
func MergeKubeconfigOf(ctx context.Context, path, name, of string, kubeconfig []byte) error {
	return mergeKubeconfig(ctx, path, name, of, kubeconfig)
}

func mergeKubeconfig(ctx context.Context, path, name, of string, kubeconfig []byte) error {
	added, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return diag.Wrap("read kubeconfig of "+name, err, "")
	}
	current := added.Contexts[added.CurrentContext]
	if current == nil || added.Clusters[current.Cluster] == nil || added.AuthInfos[current.AuthInfo] == nil {
		return diag.Errorf("", "read kubeconfig of %s: it has no current context with a cluster and a user", name)
	}
	return changeKubeconfig(ctx, path, func(config *clientcmdapi.Config) (bool, error) {
		if foreign(config, name) {
			return false, diag.Errorf("choose another name, or remove the entry with `kubectl config delete-context "+name+"`",
				"add %q to %s: there is an entry of that name that fleetctl did not make", name, path)
		}
		if of != "" && anothers(config, name, of) {
			return false, diag.Errorf("write it to a file of its own, or remove the entry with `kubectl config delete-context "+name+"`",
				"add %q to %s: the entry of that name is another cluster's", name, path)
		}
		cluster, user := added.Clusters[current.Cluster].DeepCopy(), added.AuthInfos[current.AuthInfo].DeepCopy()
		context := clientcmdapi.NewContext()
		context.Cluster, context.AuthInfo, context.Namespace = name, name, current.Namespace
		own(&cluster.Extensions, of)
		own(&user.Extensions, of)
		own(&context.Extensions, of)
		config.Clusters[name], config.AuthInfos[name], config.Contexts[name] = cluster, user, context
		config.CurrentContext = name
		return true, nil
	})
}

// RemoveFromKubeconfig takes the entries called name that MergeKubeconfig made out of the file at path; if name is the
// current context, there is none afterwards. It tells whether there was anything to remove. Entries of others stay.
func RemoveFromKubeconfig(ctx context.Context, path, name string) (removed bool, err error) {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return false, nil
	}
	err = changeKubeconfig(ctx, path, func(config *clientcmdapi.Config) (bool, error) {
		if c := config.Contexts[name]; c != nil && owned(c.Extensions) {
			delete(config.Contexts, name)
			removed = true
			if config.CurrentContext == name {
				config.CurrentContext = ""
			}
		}
		if c := config.Clusters[name]; c != nil && owned(c.Extensions) {
			delete(config.Clusters, name)
			removed = true
		}
		if u := config.AuthInfos[name]; u != nil && owned(u.Extensions) {
			delete(config.AuthInfos, name)
			removed = true
		}
		return removed, nil
	})
	return removed, err
}

// changeKubeconfig lets change edit the file at path under a lock and writes it back if change says so.
func changeKubeconfig(ctx context.Context, path string, change func(*clientcmdapi.Config) (bool, error)) error {
	// A symbolic link (a dotfiles repository) stays one: what it points to is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return diag.Wrap("change kubeconfig", err, "")
	}
	unlock, err := lockKubeconfig(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	config, err := clientcmd.LoadFromFile(path)
	if os.IsNotExist(err) {
		config, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return diag.Wrap("read kubeconfig "+path, err, "")
	}
	write, err := change(config)
	if err != nil || !write {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return WriteKubeconfig(path, content)
}

// lockKubeconfig takes two locks: ours, which the system drops when a process dies, against other runs of fleetctl; and the
// file that kubectl and kind make beside the kubeconfig, against them.
func lockKubeconfig(ctx context.Context, path string) (unlock func(), err error) {
	ours := flock.New(path + ".fleetctl-lock")
	if _, err := ours.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, diag.Wrap("lock kubeconfig "+path, err, "another fleetctl is changing it")
	}
	theirs := path + ".lock"
	for {
		err := atomicfile.Create(theirs, []byte(lockMark), 0o600) // the mark is for the next of us, should this process be killed; the name is the lock
		if err == nil {
			return func() {
				_ = os.Remove(theirs)
				_ = ours.Close()
			}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			_ = ours.Close()
			return nil, diag.Wrap("lock kubeconfig "+path, err, "")
		}
		if left, err := os.ReadFile(theirs); err == nil && string(left) == lockMark {
			_ = os.Remove(theirs) // of a fleetctl that was killed: a living one would hold our own lock
			continue
		}
		select {
		case <-ctx.Done():
			_ = ours.Close()
			return nil, diag.Wrap("lock kubeconfig "+path, context.Cause(ctx),
				"if no kubectl, kind or fleetctl is changing it, a killed one left its lock behind: rm "+theirs)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// foreign tells whether any entry called name was made by somebody else.
func foreign(config *clientcmdapi.Config, name string) bool {
	cluster, user, context := config.Clusters[name], config.AuthInfos[name], config.Contexts[name]
	return cluster != nil && !owned(cluster.Extensions) || user != nil && !owned(user.Extensions) ||
		context != nil && !owned(context.Extensions)
}

func owned(extensions map[string]runtime.Object) bool {
	_, ok := extensions[ownerExtension]
	return ok
}

// anothers tells whether an entry called name is of another cluster.
func anothers(config *clientcmdapi.Config, name, of string) bool {
	mark := mark(of)
	other := func(extensions map[string]runtime.Object) bool {
		there, ok := extensions[ownerExtension].(*runtime.Unknown)
		return !ok || !bytes.Equal(there.Raw, mark)
	}
	cluster, context := config.Clusters[name], config.Contexts[name]
	return cluster != nil && other(cluster.Extensions) || context != nil && other(context.Extensions)
}

// mark is what says of an entry that it is ours, and of which cluster: true where no other can have its name.
func mark(of string) []byte {
	if of == "" {
		return []byte(`true`)
	}
	return []byte(strconv.Quote(of)) // names have nothing in them that JSON writes in another way
}

func own(extensions *map[string]runtime.Object, of string) {
	if *extensions == nil {
		*extensions = map[string]runtime.Object{}
	}
	(*extensions)[ownerExtension] = &runtime.Unknown{Raw: mark(of), ContentType: runtime.ContentTypeJSON}
}
