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

// ownerExtension marks the contexts, clusters and users in a kubeconfig that fleetctl wrote. fleetctl removes no others.
const ownerExtension = "fleetctl.dev/owned"

// lockMark is the content of a lock file that fleetctl made.
const lockMark = "fleetctl"

// WriteKubeconfig writes kubeconfig to path atomically, with mode 0600. It makes missing folders with access for their owner only.
func WriteKubeconfig(path string, kubeconfig []byte) error {
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return diag.Wrap("write kubeconfig", err, "")
	}
	return diag.Wrap("write kubeconfig "+path, atomicfile.Write(path, kubeconfig, 0o600), "")
}

// ClusterName returns the name of the cluster of a kubeconfig's current context, or "" if there is none.
func ClusterName(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return ""
	}
	return config.Contexts[config.CurrentContext].Cluster
}

// CurrentContext returns the name of a kubeconfig's current context, or "" if there is none.
func CurrentContext(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// Reach lists the commands and files that a client of a kubeconfig uses on its own machine. An untrusted kubeconfig must have none. For
// example, the client would send the content of a token file to the server in the same kubeconfig.
type Reach struct {
	// Commands are the commands that the client runs to get a user's credentials.
	Commands []string
	// Files are the files that the client reads for tokens, certificates and keys, by their paths in the kubeconfig.
	Files []string
}

// Text describes the first command or file in words. It returns "" if there is none.
func (r Reach) Text() string {
	switch {
	case len(r.Commands) > 0:
		return "runs a command: " + r.Commands[0]
	case len(r.Files) > 0:
		return "reads a file: " + r.Files[0]
	}
	return ""
}

// ReachOf returns the Reach of all users and clusters in a kubeconfig.
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
			r.Commands = append(r.Commands, cmp.Or(user.Exec.Command, "(no name)"))
		}
		if user.AuthProvider != nil { // a provider may run commands or read files
			r.Commands = append(r.Commands, "the authentication provider "+user.AuthProvider.Name)
		}
		add(user.TokenFile, user.ClientCertificate, user.ClientKey)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Clusters)) {
		add(config.Clusters[name].CertificateAuthority)
	}
	return r, nil
}

// MergeKubeconfig writes the current context of kubeconfig to the file at path. In the file, the context, cluster and user are called name
// and have fleetctl's mark. The context becomes the current one. Other entries stay. It fails if the file has an entry of this name without
// the mark. It takes kubectl's lock, and waits for the lock until ctx ends.
func MergeKubeconfig(ctx context.Context, path, name string, kubeconfig []byte) error {
	return mergeKubeconfig(ctx, path, name, "", kubeconfig)
}

// MergeKubeconfigOf is MergeKubeconfig for a cluster whose name is not unique. of identifies the cluster. It also fails if the file has an
// entry of this name for another cluster, because users of that context would then talk to the wrong cluster.
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
	remove := "or remove the entry with `" + diag.ShellCommand("kubectl", "config", "delete-context", name) + "`"
	return changeKubeconfig(ctx, path, func(config *clientcmdapi.Config) (bool, error) {
		if foreign(config, name) {
			return false, diag.Errorf("choose another name, "+remove,
				"add %q to %s: the file has an entry of that name that fleetctl did not make", name, path)
		}
		if of != "" && anothers(config, name, of) {
			return false, diag.Errorf("write it to a separate file, "+remove,
				"add %q to %s: the entry of that name belongs to another cluster", name, path)
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

// RemoveFromKubeconfig removes the entries called name that MergeKubeconfig wrote to the file at path. If name is the current context, the
// file then has no current context. removed tells whether there were such entries. Other entries stay.
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

// changeKubeconfig reads the file at path under a lock and calls change. It writes the file if change returns true.
func changeKubeconfig(ctx context.Context, path string, change func(*clientcmdapi.Config) (bool, error)) error {
	// Replace the target of a symbolic link, and keep the link: users link their kubeconfig from a dotfiles repository.
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

// lockKubeconfig takes two locks. A file lock, which the system frees when the process ends, keeps other runs of fleetctl out. The lock
// file of kubectl and kind, beside the kubeconfig, keeps these programs out.
func lockKubeconfig(ctx context.Context, path string) (unlock func(), err error) {
	ours := flock.New(path + ".fleetctl-lock")
	if _, err := ours.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, diag.Wrap("lock kubeconfig "+path, err, "another fleetctl is changing it")
	}
	theirs := path + ".lock"
	for {
		err := atomicfile.Create(theirs, []byte(lockMark), 0o600) // the mark tells a later fleetctl that a killed fleetctl left the lock
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
			_ = os.Remove(theirs) // a killed fleetctl left it: a running one would hold the file lock
			continue
		}
		select {
		case <-ctx.Done():
			_ = ours.Close()
			return nil, diag.Wrap("lock kubeconfig "+path, context.Cause(ctx),
				"if no kubectl, kind or fleetctl is changing the file, a killed program has left its lock: "+diag.ShellCommand("rm", theirs))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// foreign tells whether an entry called name lacks fleetctl's mark.
func foreign(config *clientcmdapi.Config, name string) bool {
	cluster, user, context := config.Clusters[name], config.AuthInfos[name], config.Contexts[name]
	return cluster != nil && !owned(cluster.Extensions) || user != nil && !owned(user.Extensions) ||
		context != nil && !owned(context.Extensions)
}

func owned(extensions map[string]runtime.Object) bool {
	_, ok := extensions[ownerExtension]
	return ok
}

// anothers tells whether an entry called name belongs to a cluster other than of.
func anothers(config *clientcmdapi.Config, name, of string) bool {
	mark := mark(of)
	other := func(extensions map[string]runtime.Object) bool {
		there, ok := extensions[ownerExtension].(*runtime.Unknown)
		return !ok || !bytes.Equal(there.Raw, mark)
	}
	cluster, context := config.Clusters[name], config.Contexts[name]
	return cluster != nil && other(cluster.Extensions) || context != nil && other(context.Extensions)
}

// mark returns the content of ownerExtension: the cluster's identity, or true if the cluster's name is unique.
func mark(of string) []byte {
	if of == "" {
		return []byte(`true`)
	}
	return []byte(strconv.Quote(of)) // these identities need no escapes in JSON
}

func own(extensions *map[string]runtime.Object, of string) {
	if *extensions == nil {
		*extensions = map[string]runtime.Object{}
	}
	(*extensions)[ownerExtension] = &runtime.Unknown{Raw: mark(of), ContentType: runtime.ContentTypeJSON}
}

// Contexts returns the sorted names of the contexts in the kubeconfig at path, or else in the files of $KUBECONFIG, or else in the file in
// the home folder. It ignores files that it cannot read. It runs no credential plugin and makes no connection.
func Contexts(path string) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	rules.WarnIfAllMissing = false
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}
