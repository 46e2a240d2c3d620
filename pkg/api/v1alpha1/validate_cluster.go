package v1alpha1

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

func (v *validator) managementClusters(f *Fleet) {
	all := f.Spec.ManagementClusters
	at := func(i int) string { return itemPath("spec.managementClusters", i) }
	name := func(i int) string { return fieldPath(at(i), "name") }
	for i := range all {
		v.managementCluster(at(i), &all[i])
		v.tuning(at(i)+".tuning", &all[i], f.Spec.Flux)
		v.repository(at(i)+".repository", &all[i], f)
	}
	unique(v, all, name, "management cluster", func(m ManagementCluster) string { return m.Name })
	v.separateFolders(all, at)
	v.parents(all, at)
}

// parents reports management clusters that make each other in a circle. A parent may be in another fleet.
func (v *validator) parents(all []ManagementCluster, at func(int) string) {
	parent := map[string]string{}
	for _, m := range all {
		parent[m.Name] = m.Parent
	}
	for i, m := range all {
		above := m.Parent
		for range all {
			if above != "" && above == m.Name {
				v.errorf(RuleValue, at(i)+".parent", "remove the parent of one of them: a fleet begins with a management cluster without a parent",
					"management cluster %s would make itself", m.Name)
				break
			}
			above = parent[above]
		}
	}
}

// repository checks the separate fleet repo of a management cluster: the management cluster has a parent, the repo is not the repo of this
// fleet, and its environments are in this fleet.
func (v *validator) repository(at string, m *ManagementCluster, f *Fleet) {
	own := m.Repository
	if own == nil {
		return
	}
	if m.Parent == "" {
		v.errorf(RuleValue, at, "remove it, or add the parent that makes "+m.Name,
			"only a management cluster that another one makes can have a separate repository")
	}
	v.label(at+".fleet", own.Fleet, maxLabel)
	v.git(at+".git", own.Git)
	if own.Git.URL == "" {
		v.errorf(RuleRequired, at+".git.url", "", "required field is missing")
	} else if SeemsSameRepository(own.Git.URL, f.Spec.Git.URL) {
		v.errorf(RuleDuplicate, at+".git.url", "remove `repository:` to share the repository of this fleet",
			"this is the repository of this fleet")
	}
	name := func(i int) string { return itemPath(at+".environments", i) }
	for i, environment := range own.Environments {
		v.refersTo(name(i), "environment", environment, f.EnvironmentNames())
	}
	unique(v, own.Environments, name, "environment", func(s string) string { return s })
}

// separateFolders reports two management clusters that would write the same files. Each owns the folder of its configuration and its home,
// the folder of its workload clusters. The two folders differ if the management cluster has a path.
func (v *validator) separateFolders(all []ManagementCluster, at func(int) string) {
	owner := map[string]int{}
	for i := range all {
		for _, dir := range []string{all[i].Dir(), all[i].Layout().Owned()} {
			if j, taken := owner[dir]; taken && j != i {
				hint := "give one of them another cloud or generation, such as `cloud: " + all[i].Name + "`"
				if dir == all[i].Layout().Path {
					hint = "give one of them another path"
				}
				v.errorf(RuleDuplicate, at(i), hint, "folder %s belongs to management cluster %s already", dir, all[j].Name)
				break
			}
			owner[dir] = i
		}
	}
}

func (v *validator) managementCluster(at string, m *ManagementCluster) {
	v.label(at+".name", m.Name, maxClusterName)
	if m.Parent != "" {
		v.label(at+".parent", m.Parent, maxClusterName)
	}
	v.label(at+".cloud", m.Cloud, maxLabel)
	v.label(at+".generation", m.Generation, maxLabel)
	v.folder(at+".path", m.Path)
	v.version(at+".kubernetesVersion", m.KubernetesVersion)
	v.host(at, m)
	v.version(at+".certManager.version", m.CertManager.Version)
	v.releaseURL(at+".certManager.url", m.CertManager.URL)
	v.providers(at+".providers", m.Providers)
	v.vault(at+".vault", m.Vault)
}

// folder checks that dir is a folder of the fleet repo.
func (v *validator) folder(path, dir string) {
	if dir != "" && (strings.ContainsAny(dir, "\\:") || !fs.ValidPath(layout.CleanPath(dir)) || filepath.IsAbs(dir)) {
		v.errorf(RuleValue, path, "write it from the top of the repo, like clusters/production", "%.80q is not a folder of the fleet repo", dir)
	}
}

func (v *validator) host(cluster string, m *ManagementCluster) {
	h, at := m.Host, cluster+".host"
	hostType := h.Type
	switch {
	case hostType != "":
	case m.Parent != "":
		hostType = HostWorkload
	default:
		hostType = HostKind
	}
	known := make([]string, 0, len(HostTypes()))
	for _, t := range HostTypes() {
		known = append(known, string(t))
	}
	if !v.oneOf(at+".type", "host type", string(hostType), known) {
		return
	}
	for _, k := range hostTypes {
		if k.name != hostType && k.settings != nil && k.settings(&h) {
			v.errorf(RuleValue, at+"."+string(k.name), "remove it, or set type: "+string(k.name),
				"these are the settings of %s %s host, but the type is %s", k.name.article(), k.name, hostType)
		}
	}
	// A management cluster with a path is older than fleetctl. Flags tell each command how to reach it.
	if hostType == HostExisting && h.Existing == nil && m.Path == "" {
		v.errorf(RuleRequired, at+".existing", "add `existing:` with the `context:` of the cluster; fleetctl never takes the current one",
			"required field is missing")
	}
	if m.Parent == "" && hostType == HostWorkload {
		v.errorf(RuleRequired, cluster+".parent", "add `parent:` with the name of the management cluster that makes it",
			"required field is missing")
	}
	if m.Parent != "" && hostType != HostWorkload {
		v.errorf(RuleValue, at+".type", "remove host, or remove parent",
			"the management cluster runs on the workload cluster %s of %s, but the type is %s",
			m.Name, m.Parent, hostType)
	}
	if hostType.Elsewhere() {
		v.elsewhere(cluster, hostType, m)
	}
	if h.Kind != nil {
		v.kindHost(at+".kind", h.Kind)
	}
	if h.Embedded != nil {
		v.mirrors(at+".embedded.mirrors", h.Embedded.Mirrors)
		v.issuer(at+".embedded.serviceAccountIssuer", h.Embedded.ServiceAccountIssuer)
	}
}

// issuer checks the URL of a token issuer. The URL is part of tokens. Clouds read documents below it, follow no redirects and send no
// credentials.
func (v *validator) issuer(at, address string) {
	if address != "" && (!IsIssuer(address) || strings.HasSuffix(address, "/")) {
		v.errorf(RuleValue, at, "write it as https://oidc.example.com/mgmt", "%.120q is not a valid address of an issuer", address)
	}
}

func (v *validator) mirrors(at string, mirrors []RegistryMirror) {
	for i, m := range mirrors {
		v.registry(itemPath(at, i)+".mirror", m.Mirror)
		if strings.Contains(m.Registry, "/") {
			v.errorf(RuleValue, itemPath(at, i)+".registry", "write only its host, like registry.k8s.io",
				"%.80q is not the host of a registry", m.Registry)
		}
	}
	unique(v, mirrors, func(i int) string { return itemPath(at, i) + ".registry" }, "mirror of",
		func(m RegistryMirror) string { return m.Registry })
}

// elsewhere checks a host that is not on this machine.
func (v *validator) elsewhere(cluster string, hostType HostType, m *ManagementCluster) {
	if v.noRemote && m.Path == "" { // a cluster with a path has a Flux source already
		v.errorf(RuleRequired, cluster+".host.type", "add `url:` to spec.git (--git-url for a new fleet): a remote that the cluster reaches",
			"%s cluster cannot fetch the fleet repo from this machine", article(hostType))
	}
	if m.KubernetesVersion != "" {
		v.warnf(RuleUnused, cluster+".kubernetesVersion", "remove it", "%s host has a version of its own", article(hostType))
	}
}

func article(hostType HostType) string {
	if hostType == HostExisting {
		return "an existing"
	}
	return "a workload"
}

func (v *validator) kindHost(at string, k *KindHost) {
	if strings.ContainsAny(k.Image, " \t\n") || strings.Contains(k.Image, "://") {
		v.errorf(RuleValue, at+".image", "write it like kindest/node:v1.36.3", "%.80q is not an image", k.Image)
	}
	for i, m := range k.ExtraMounts {
		mount := itemPath(at+".extraMounts", i)
		if m.HostPath != "" && !filepath.IsAbs(m.HostPath) && !path.IsAbs(m.HostPath) {
			v.errorf(RuleValue, mount+".hostPath", "start it with /", "%.80q is not an absolute path", m.HostPath)
		}
		if m.ContainerPath != "" && !path.IsAbs(m.ContainerPath) {
			v.errorf(RuleValue, mount+".containerPath", "start it with /", "%.80q is not an absolute path", m.ContainerPath)
		}
	}
	unique(v, k.ExtraMounts, func(i int) string { return itemPath(at+".extraMounts", i) + ".containerPath" }, "mount at",
		func(m Mount) string { return m.ContainerPath })
}
