// Package recipe says what a bundle is made of: which programs at which versions, under which image names. The versions
// of programs are pinned in modules/*/go.mod; what is repeated here is what images and manifests call them.
package recipe

import (
	"path"
	"strings"
)

// Program is one executable, built from a module below modules/.
type Program struct {
	Name    string // of the executable; two of the main packages are called kubeadm
	Module  string // folder below modules/
	Package string
	LDFlags string
	Names   []string // more names that the program acts under
	Host    bool     // runs on this machine rather than in a container
	Cgo     bool     // needs a C compiler, and this machine's C library: only for what runs here
	Tags    string   // for the build, separated by commas
	// Folders that the program reads when it runs: they are put beside it. Package is the path of the module that has them.
	Folders []string
}

// Versions that names of images and files carry.
const (
	ClusterAPI = "v1.14.2"
	// ClusterAPIBefore is a release of Cluster API, its docker provider included, to upgrade from: the newest of the minor version before of
	// which the module proxy serves all parts.
	ClusterAPIBefore = "v1.13.0"
	DockerProvider   = "v1.14.0"
	CertManager      = "v1.11.5"
	// CertManagerBefore and FluxBefore are releases to upgrade from, too. Of most older minor versions of Flux, the module proxy lacks a part.
	CertManagerBefore = "v1.11.4"
	Kubernetes        = "v1.36.3"
	Flux              = "v2.9.5"
	FluxBefore        = "v2.9.4"
	Containerd        = "v2.3.4"
	AWSProvider       = "v2.13.0"
	// AWSProviderBefore is a release to upgrade from: the newest of the minor version before.
	AWSProviderBefore = "v2.12.1"
	GCPProvider       = "v1.13.1"
	AzureProvider     = "v1.23.0"
	VSphereProvider   = "v1.14.0"
	// AzureServiceOperator is the one that the Azure provider's components bring along.
	AzureServiceOperator = "v2.13.0"
)

const componentVersion = "k8s.io/component-base/version"

// Controllers run in a management cluster.
var Controllers = []Program{
	controller("cluster-api-controller", "sigs.k8s.io/cluster-api/core"),
	controller("kubeadm-bootstrap-controller", "sigs.k8s.io/cluster-api/bootstrap/kubeadm"),
	controller("kubeadm-control-plane-controller", "sigs.k8s.io/cluster-api/controlplane/kubeadm"),
	controller("capd-manager", "sigs.k8s.io/cluster-api/test/infrastructure/docker"),
	sourceController,
	controller("kustomize-controller", "github.com/fluxcd/kustomize-controller"),
	controller("helm-controller", "github.com/fluxcd/helm-controller"),
	controller("notification-controller", "github.com/fluxcd/notification-controller"),
	certManager("controller", "", CertManager),
	certManager("cainjector", "", CertManager),
	certManager("webhook", "", CertManager),
}

// sourceController reads buckets of Google Cloud over HTTP only. Its tag leaves out Envoy's protocol, by which gRPC finds servers inside
// Google Cloud, and which takes half a minute to compile.
var sourceController = Program{
	Name: "source-controller", Module: "controllers", Package: "github.com/fluxcd/source-controller", Tags: "disable_grpc_modules",
}

// Before are the controllers in the release before, for tests of upgrades. Flux's notification-controller is the same in both.
var Before = []Program{
	before("cluster-api-controller", "sigs.k8s.io/cluster-api"),
	before("kubeadm-bootstrap-controller", "sigs.k8s.io/cluster-api/bootstrap/kubeadm"),
	before("kubeadm-control-plane-controller", "sigs.k8s.io/cluster-api/controlplane/kubeadm"),
	before("capd-manager", "sigs.k8s.io/cluster-api/test/infrastructure/docker"),
	fluxBefore("source-controller", sourceController.Tags),
	fluxBefore("kustomize-controller", ""),
	fluxBefore("helm-controller", ""),
	certManager("controller", suffixBefore, CertManagerBefore),
	certManager("cainjector", suffixBefore, CertManagerBefore),
	certManager("webhook", suffixBefore, CertManagerBefore),
}

// ImageAutomation are the two Flux controllers that only fleets with image automation need.
var ImageAutomation = []Program{
	controller("image-reflector-controller", "github.com/fluxcd/image-reflector-controller"),
	controller("image-automation-controller", "github.com/fluxcd/image-automation-controller"),
}

// ControlPlane are the programs of the embedded host's control plane. Of Kubernetes it runs nothing else, and in a program of its own: that
// of a node takes twice as long to build.
var ControlPlane = []Program{
	kubernetesProgram("kube-control-plane", "kube-apiserver", "kube-controller-manager", "kubectl"),
	etcd,
}

var etcd = Program{Name: "etcd", Module: "etcd", Package: "go.etcd.io/etcd/server/v3"}

// Node are the programs of a Kubernetes node. What its control plane runs, and kubectl, are in kubernetes too, under names that nobody
// links to.
var Node = []Program{
	kubernetesProgram("kubernetes", "kube-scheduler", "kube-proxy", "kubeadm", "kubelet"),
	etcd,
	{Name: "coredns", Module: "coredns", Package: "github.com/coredns/coredns"},
	{Name: "pause", Module: "pause", Package: "."},
	{Name: "crictl", Module: "crictl", Package: "sigs.k8s.io/cri-tools/cmd/crictl"},
	containerd("containerd"),
	containerd("ctr"),
	containerd("containerd-shim-runc-v2"),
	cni("main/bridge"),
	cni("main/ptp"),
	cni("main/loopback"),
	cni("ipam/host-local"),
	cni("meta/portmap"),
}

// Clouds are those whose infrastructure providers can be built. They take long to build, and do nothing without an account: what they
// are here for is to be started.
var Clouds = []string{"aws", "gcp", "azure", "vsphere"}

// CloudProviders are the managers of infrastructure providers, by cloud.
var CloudProviders = map[string][]Program{
	"aws": {{Name: "cluster-api-aws-controller", Module: "capa", Package: "sigs.k8s.io/cluster-api-provider-aws/v2"}},
	"gcp": {{Name: "cluster-api-gcp-controller", Module: "capg", Package: "sigs.k8s.io/cluster-api-provider-gcp"}},
	"azure": {
		{Name: "cluster-api-azure-controller", Module: "capz", Package: "sigs.k8s.io/cluster-api-provider-azure"},
		{Name: "azure-service-operator", Module: "aso", Package: "github.com/Azure/azure-service-operator/v2/cmd/controller"},
	},
	"vsphere": {{Name: "cluster-api-vsphere-controller", Module: "capv", Package: "sigs.k8s.io/cluster-api-provider-vsphere"}},
}

// CloudProvidersBefore are the managers of the providers in a release before, by cloud, for tests of upgrades. Most clouds have none.
var CloudProvidersBefore = map[string][]Program{
	"aws": {{
		Name: "cluster-api-aws-controller" + suffixBefore, Module: "capa" + suffixBefore,
		Package: "sigs.k8s.io/cluster-api-provider-aws/v2",
	}},
}

// Peers are other projects' programs, to compare with and to look at clusters with.
var Peers = []Program{
	{Name: "kind", Module: "peers", Package: "sigs.k8s.io/kind", Host: true},
	{
		Name: "clusterctl", Module: "peers", Package: "sigs.k8s.io/cluster-api/cmd/clusterctl", Host: true,
		LDFlags: "-X sigs.k8s.io/cluster-api/version.gitVersion=" + ClusterAPI +
			" -X sigs.k8s.io/cluster-api/version.gitMajor=1 -X sigs.k8s.io/cluster-api/version.gitMinor=14",
	},
	{Name: "helm", Module: "helm", Package: "helm.sh/helm/v4/cmd/helm", Host: true},
}

// Forge is a Git forge, to try pull requests on. It keeps all in one file of SQLite's.
var Forge = []Program{{
	Name: "gitea", Module: "gitea", Package: "code.gitea.io/gitea", Host: true, Cgo: true, Tags: "sqlite,sqlite_unlock_notify",
	Folders: []string{"options", "public", "templates"},
}}

func controller(name, pkg string) Program {
	return Program{Name: name, Module: "controllers", Package: pkg}
}

// suffixBefore ends the names of the programs and modules of a release before.
const suffixBefore = "-before"

func before(name, pkg string) Program {
	return Program{Name: name + suffixBefore, Module: "controllers" + suffixBefore, Package: pkg}
}

func fluxBefore(name, tags string) Program {
	return Program{Name: name + suffixBefore, Module: "flux" + suffixBefore, Package: "github.com/fluxcd/" + name, Tags: tags}
}

func kubernetesProgram(name string, names ...string) Program {
	return Program{
		Name: name, Module: name, Package: ".", Names: names,
		LDFlags: "-X " + componentVersion + ".gitVersion=" + Kubernetes +
			" -X " + componentVersion + ".gitMajor=1 -X " + componentVersion + ".gitMinor=36",
	}
}

func certManager(name, suffix, version string) Program {
	const pkg = "github.com/cert-manager/cert-manager"
	return Program{
		Name: "cert-manager-" + name + suffix, Module: "cert-manager" + suffix, Package: pkg + "/cmd/" + name,
		LDFlags: "-X " + pkg + "/pkg/util.AppVersion=" + version,
	}
}

func containerd(name string) Program {
	const pkg = "github.com/containerd/containerd/v2"
	return Program{
		Name: name, Module: "containerd", Package: pkg + "/cmd/" + name,
		LDFlags: "-X " + pkg + "/version.Version=" + Containerd,
	}
}

func cni(name string) Program {
	return Program{Name: "cni-" + path.Base(name), Module: "cni", Package: "github.com/containernetworking/plugins/plugins/" + name}
}

// Flux says whether the program is one of Flux's controllers.
func (p Program) Flux() bool { return strings.HasPrefix(p.Package, "github.com/fluxcd/") }
