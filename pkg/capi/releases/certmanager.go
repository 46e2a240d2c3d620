package releases

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// CertManager returns cert-manager's manifest as released. It reads the manifest only once, and does not parse it.
func (s *Source) CertManager(ctx context.Context) (*Manifest, error) {
	s.mu.Lock()
	known := s.certsRaw
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	released, err := s.config.CertManager().Get()
	if err != nil {
		return nil, fmt.Errorf("find cert-manager: %w", err)
	}
	wanted, location := cmp.Or(s.certs, released.Version()), released.URL()
	switch {
	case s.repository == "" && s.certsURL != "":
		wanted, location = s.certs, s.certsURL
	case s.repository != "":
		if wanted, err = s.certManagerInFolder(released.Version()); err != nil {
			return nil, diag.Wrap("find cert-manager", err, "")
		}
		location = fileURL(filepath.Join(s.repository, CertManager, wanted, certManagerFile))
	}
	// clusterctl itself reads cert-manager as if it were a provider without a type.
	client, err := s.open(ctx, config.NewProvider(CertManager, location, ""))
	if err != nil {
		return nil, diag.Wrap("find cert-manager", err, "")
	}
	wanted = cmp.Or(wanted, client.DefaultVersion())
	content, err := client.Components().Raw(ctx, repository.ComponentsOptions{Version: wanted})
	if err == nil && len(content) > maxRelease {
		err = errTooLarge
	}
	if err != nil {
		return nil, diag.Wrap("read cert-manager's manifest", err, "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.certsRaw == nil { // two goroutines may have read it, and a server may give each another answer
		s.certsRaw = &Manifest{Version: wanted, File: certManagerFile, YAML: content}
	}
	return s.certsRaw, nil
}

// CertManagerVersion returns the version that CertManager would read. It returns "" if only the content at CertManagerURL tells the
// version.
func (s *Source) CertManagerVersion() (string, error) {
	released, err := s.config.CertManager().Get()
	switch {
	case err != nil:
		return "", fmt.Errorf("find cert-manager: %w", err)
	case s.repository != "":
		version, err := s.certManagerInFolder(released.Version())
		return version, diag.Wrap("find cert-manager", err, "")
	case s.certsURL != "":
		return s.certs, nil
	}
	return cmp.Or(s.certs, released.Version()), nil
}

// NewestCertManager returns the newest version that is known to work: the newest in the repository folder, or else the version that
// clusterctl would install.
func (s *Source) NewestCertManager() (string, error) {
	if s.repository != "" {
		versions, err := s.versions(CertManager)
		if err != nil {
			return "", diag.Wrap("find cert-manager", err, "")
		}
		return versions[0], nil
	}
	released, err := s.config.CertManager().Get()
	if err != nil {
		return "", fmt.Errorf("find cert-manager: %w", err)
	}
	return released.Version(), nil
}

// CertManager is the name of cert-manager in a provider repository, of its namespace, and of its value of clusterctl's core label.
const CertManager = "cert-manager"

const certManagerFile = "cert-manager.yaml"

// certManagerInFolder returns a version from the repository folder: the wanted one, or else clusterctl's own, or else the newest. It
// returns an error if the wanted version is missing.
func (s *Source) certManagerInFolder(usual string) (string, error) {
	versions, err := s.versions(CertManager)
	if err != nil {
		return "", err
	}
	for _, v := range []string{s.certs, usual, versions[0]} {
		if v != "" && slices.Contains(versions, v) {
			return v, nil
		}
		if v != "" && v == s.certs {
			return "", fmt.Errorf("the offline repository has no cert-manager %s", v)
		}
	}
	return versions[0], nil
}

// CertManagerObjects returns the objects of cert-manager with clusterctl's labels and annotations, as clusterctl would apply them, and
// their version.
func (s *Source) CertManagerObjects(ctx context.Context) ([]*unstructured.Unstructured, string, error) {
	manifest, err := s.CertManager(ctx)
	if err != nil {
		return nil, "", err
	}
	if err := manifest.screen("cert-manager " + manifest.Version); err != nil {
		return nil, "", err
	}
	objects, err := kube.ParseYAML(manifest.YAML)
	if err != nil {
		return nil, "", fmt.Errorf("read cert-manager's manifest: %w", &quotingError{err})
	}
	for _, obj := range objects {
		kube.AddLabels(obj, map[string]string{
			clusterctlv1.ClusterctlLabel: "", clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelCertManagerValue,
		})
		kube.AddAnnotations(obj, map[string]string{clusterctlv1.CertManagerVersionAnnotation: manifest.Version})
		if err := s.tuneDeployment(obj); err != nil {
			return nil, "", diag.Wrap("tune cert-manager", err, "")
		}
	}
	pin(objects, s.pinned())
	return objects, manifest.Version, nil
}

// imagesOf returns the images of the Deployments among objects.
func imagesOf(objects ...*unstructured.Unstructured) []string {
	var images []string
	for _, obj := range objects {
		if obj.GroupVersionKind() != kube.DeploymentKind {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &d); err != nil {
			continue
		}
		for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			images = append(images, c.Image)
		}
	}
	return images
}
