package recipe

import (
	"path"
	"strings"
)

// Image is a container image that holds one program of ours.
type Image struct {
	Ref        string   // the name that manifests ask for
	Step       string   // what builds it, and keeps it; empty stands for the last part of Ref
	Program    string   // of Program.Name
	Path       string   // where the program lies in the image
	Links      []string // more paths that lead to it
	Root       bool     // runs as root
	Entrypoint bool     // false where every manifest names the command itself
}

// ControllerImages are the images of Controllers.
var ControllerImages = []Image{
	manager("registry.k8s.io/cluster-api/cluster-api-controller:"+ClusterAPI, "cluster-api-controller"),
	manager("registry.k8s.io/cluster-api/kubeadm-bootstrap-controller:"+ClusterAPI, "kubeadm-bootstrap-controller"),
	manager("registry.k8s.io/cluster-api/kubeadm-control-plane-controller:"+ClusterAPI, "kubeadm-control-plane-controller"),
	// The docker provider talks to the engine through a socket that only root may open.
	{
		Ref: "gcr.io/k8s-staging-cluster-api/capd-manager:" + DockerProvider, Program: "capd-manager",
		Path: "/manager", Root: true, Entrypoint: true,
	},
	flux("source-controller", "v1.9.5"),
	flux("kustomize-controller", "v1.9.5"),
	flux("helm-controller", "v1.6.4"),
	flux("notification-controller", "v1.9.3"),
	certManagerImage("controller", "", CertManager),
	certManagerImage("cainjector", "", CertManager),
	certManagerImage("webhook", "", CertManager),
}

// BeforeImages are the images of Before.
var BeforeImages = []Image{
	managerBefore("registry.k8s.io/cluster-api/", "cluster-api-controller"),
	managerBefore("registry.k8s.io/cluster-api/", "kubeadm-bootstrap-controller"),
	managerBefore("registry.k8s.io/cluster-api/", "kubeadm-control-plane-controller"),
	managerBefore("gcr.io/k8s-staging-cluster-api/", "capd-manager"),
	fluxImageBefore("source-controller", "v1.9.4"),
	fluxImageBefore("kustomize-controller", "v1.9.4"),
	fluxImageBefore("helm-controller", "v1.6.3"),
	certManagerImage("controller", suffixBefore, CertManagerBefore),
	certManagerImage("cainjector", suffixBefore, CertManagerBefore),
	certManagerImage("webhook", suffixBefore, CertManagerBefore),
}

// ImageAutomationImages are the images of ImageAutomation.
var ImageAutomationImages = []Image{
	flux("image-reflector-controller", "v1.2.4"),
	flux("image-automation-controller", "v1.2.4"),
}

// The images of CloudProviders, under the names of their releases.
const (
	AWSImage                  = "registry.k8s.io/cluster-api-aws/cluster-api-aws-controller:" + AWSProvider
	AWSImageBefore            = "registry.k8s.io/cluster-api-aws/cluster-api-aws-controller:" + AWSProviderBefore
	GCPImage                  = "registry.k8s.io/cluster-api-gcp/cluster-api-gcp-controller:" + GCPProvider
	AzureImage                = "registry.k8s.io/cluster-api-azure/cluster-api-azure-controller:" + AzureProvider
	VSphereImage              = "registry.k8s.io/cluster-api-vsphere/cluster-api-vsphere-controller:" + VSphereProvider
	AzureServiceOperatorImage = "mcr.microsoft.com/k8s/azureserviceoperator:" + AzureServiceOperator
)

// CloudProviderImages are the images of the providers' own managers, by cloud.
var CloudProviderImages = map[string]Image{
	"aws":     manager(AWSImage, "cluster-api-aws-controller"),
	"gcp":     manager(GCPImage, "cluster-api-gcp-controller"),
	"azure":   manager(AzureImage, "cluster-api-azure-controller"),
	"vsphere": manager(VSphereImage, "cluster-api-vsphere-controller"),
}

// CloudProviderImagesBefore are the images of CloudProvidersBefore, by cloud.
var CloudProviderImagesBefore = map[string]Image{
	"aws": {
		Ref: AWSImageBefore, Step: "cluster-api-aws-controller" + suffixBefore, Program: "cluster-api-aws-controller" + suffixBefore,
		Path: "/manager", Entrypoint: true,
	},
}

// ServiceOperator is the image of Azure Service Operator. It also holds the CRDs of its release, in ServiceOperatorCRDs.
var ServiceOperator = Image{
	Ref: AzureServiceOperatorImage, Program: "azure-service-operator", Path: "/aso-controller", Entrypoint: true,
}

// ServiceOperatorCRDs is where Azure Service Operator looks for CRDs: "crds" in its working folder.
const ServiceOperatorCRDs = "/crds"

// Names of the images that a node starts from. kubeadm asks for these versions of CoreDNS and etcd, whatever is inside.
const (
	PauseImage   = "registry.k8s.io/pause:3.10.2"
	proxyImage   = "registry.k8s.io/kube-proxy:" + Kubernetes
	NodeImage    = "docker.io/kindest/node:" + Kubernetes
	FullImage    = NodeImage + "-fleetctl" // with the controllers' images inside
	HAProxyImage = "docker.io/kindest/haproxy:v20230606-42a2262b"
)

// ControlPlaneImages are what the embedded host takes its programs from. The two of Kubernetes share one layer, because one program acts as
// both, so the second one adds nothing to a bundle.
var ControlPlaneImages = []Image{
	controlPlane("kube-apiserver"),
	controlPlane("kube-controller-manager"),
	etcdImage,
}

// NodeImages are what kubeadm starts on a node. Those of Kubernetes share one layer, too.
var NodeImages = []Image{
	kubernetes("kube-apiserver"),
	kubernetes("kube-controller-manager"),
	kubernetes("kube-scheduler"),
	etcdImage,
	{Ref: "registry.k8s.io/coredns/coredns:v1.14.2", Program: "coredns", Path: "/coredns", Root: true, Entrypoint: true},
	{Ref: PauseImage, Program: "pause", Path: "/pause", Entrypoint: true},
}

var etcdImage = Image{Ref: "registry.k8s.io/etcd:3.6.8-0", Program: "etcd", Path: "/usr/local/bin/etcd", Root: true}

// ProxyImage is kube-proxy's, which also needs the programs that it drives.
var ProxyImage = Image{
	Ref: proxyImage, Program: "kubernetes", Path: kubernetesPath, Links: []string{"/usr/local/bin/kube-proxy"}, Root: true,
}

const kubernetesPath = "/usr/local/bin/kubernetes"

// The links are the same in all images of a program, so that they are one layer.
var controlPlaneLinks = []string{
	"/usr/local/bin/kube-apiserver",
	"/usr/local/bin/kube-controller-manager",
}

var kubernetesLinks = []string{
	"/usr/local/bin/kube-apiserver",
	"/usr/local/bin/kube-controller-manager",
	"/usr/local/bin/kube-scheduler",
}

func manager(ref, program string) Image {
	return Image{Ref: ref, Program: program, Path: "/manager", Entrypoint: true}
}

func managerBefore(registry, name string) Image {
	return Image{
		Ref: registry + name + ":" + ClusterAPIBefore, Step: name + suffixBefore, Program: name + suffixBefore,
		Path: "/manager", Root: name == "capd-manager", Entrypoint: true,
	}
}

func flux(name, version string) Image {
	return Image{Ref: "ghcr.io/fluxcd/" + name + ":" + version, Program: name, Path: "/usr/local/bin/" + name, Entrypoint: true}
}

func fluxImageBefore(name, version string) Image {
	i := flux(name, version)
	i.Step, i.Program = name+suffixBefore, name+suffixBefore
	return i
}

func certManagerImage(name, suffix, version string) Image {
	program := "cert-manager-" + name + suffix
	return Image{
		Ref: "quay.io/jetstack/cert-manager-" + name + ":" + version, Step: program, Program: program,
		Path: "/app/cmd/" + name + "/" + name, Entrypoint: true,
	}
}

func kubernetes(name string) Image {
	return Image{
		Ref: "registry.k8s.io/" + name + ":" + Kubernetes, Program: "kubernetes", Path: kubernetesPath,
		Links: kubernetesLinks, Root: true,
	}
}

func controlPlane(name string) Image {
	return Image{
		Ref: "registry.k8s.io/" + name + ":" + Kubernetes, Step: "embedded-" + name, // a node has another of that Ref
		Program: "kube-control-plane", Path: "/usr/local/bin/kube-control-plane", Links: controlPlaneLinks, Root: true,
	}
}

// Name is what its step of a build is called.
func (i Image) Name() string {
	if i.Step != "" {
		return i.Step
	}
	name, _, _ := strings.Cut(path.Base(i.Ref), ":")
	return name
}
