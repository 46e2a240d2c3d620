package schema

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imageupdatev1 "github.com/fluxcd/image-automation-controller/api/v1"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// fluxChoices are the values that Flux's CRDs accept, from the kubebuilder markers of their types.
func fluxChoices() map[fieldOf][]string {
	crds, apply := []string{"Skip", "Create", "CreateReplace"}, []string{"enabled", "disabled", "auto"}
	values, onFailure := []string{"Secret", "ConfigMap"}, []string{"RemediateOnFailure", "RetryOnFailure"}
	signers := []string{"cosign", "notation"}
	clouds, order := []string{"generic", "aws", "azure", "gcp"}, []string{"asc", "desc"}
	return map[fieldOf][]string{
		in[helmv2.DriftDetection]("mode"):                       {"enabled", "warn", "disabled"},
		in[helmv2.HelmChartTemplateSpec]("reconcileStrategy"):   {"ChartVersion", "Revision"},
		in[helmv2.CrossNamespaceObjectReference]("kind"):        {"HelmRepository", "GitRepository", "Bucket"},
		in[helmv2.CrossNamespaceSourceReference]("kind"):        {"OCIRepository", "HelmChart", "ExternalArtifact"},
		in[helmv2.Install]("crds"):                              crds,
		in[helmv2.Upgrade]("crds"):                              crds,
		in[helmv2.Upgrade]("serverSideApply"):                   apply,
		in[helmv2.Rollback]("serverSideApply"):                  apply,
		in[helmv2.InstallStrategy]("name"):                      onFailure,
		in[helmv2.UpgradeStrategy]("name"):                      onFailure,
		in[helmv2.UpgradeRemediation]("strategy"):               {"rollback", "uninstall"},
		in[helmv2.Uninstall]("deletionPropagation"):             {"background", "foreground", "orphan"},
		in[meta.ValuesReference]("kind"):                        values,
		in[kustomizev1.SubstituteReference]("kind"):             values,
		in[kustomizev1.Decryption]("provider"):                  {"sops"},
		in[kustomizev1.KustomizationSpec]("deletionPolicy"):     {"MirrorPrune", "Delete", "WaitForTermination", "Orphan"},
		in[sourcev1.GitRepositorySpec]("provider"):              {"generic", "aws", "azure", "github"},
		in[sourcev1.BucketSpec]("provider"):                     clouds,
		in[sourcev1.HelmRepositorySpec]("provider"):             clouds,
		in[sourcev1.HelmRepositorySpec]("type"):                 {"default", "oci"},
		in[sourcev1.HelmChartSpec]("reconcileStrategy"):         {"ChartVersion", "Revision"},
		in[sourcev1.LocalHelmChartSourceReference]("kind"):      {"HelmRepository", "GitRepository", "Bucket"},
		in[sourcev1.OCIRepositorySpec]("provider"):              clouds,
		in[sourcev1.OCILayerSelector]("operation"):              {"extract", "copy"},
		in[sourcev1.OCIRepositoryVerification]("provider"):      signers,
		in[sourcev1.HelmChartVerification]("provider"):          signers,
		in[sourcev1.GitRepositoryVerification]("mode"):          {"head", "HEAD", "Tag", "TagAndHEAD"},
		in[sourcev1.BucketSTSSpec]("provider"):                  {"aws", "ldap"},
		in[helmv2.HelmReleaseSpec]("postRenderStrategy"):        {"nohooks", "combined", "separate"},
		in[helmv2.HelmChartTemplateVerification]("provider"):    signers,
		in[helmv2.WaitStrategy]("name"):                         {"poller", "legacy"},
		in[helmv2.Upgrade]("chartNameChangeStrategy"):           {"InPlaceUpdate", "Reinstall"},
		in[kustomizev1.KustomizationSpec]("buildMetadata"):      {"originAnnotations", "transformerAnnotations"},
		in[kustomizev1.PostBuild]("substituteStrategy"):         {"WithVariables", "Always"},
		in[imagev1.ImagePolicySpec]("digestReflectionPolicy"):   {"Always", "IfNotPresent", "Never"},
		in[imageupdatev1.UpdateStrategy]("strategy"):            {"Setters"},
		in[imageupdatev1.CrossNamespaceSourceReference]("kind"): {"GitRepository"},
		in[imageupdatev1.SigningKey]("type"):                    {"gpg", "ssh"},
		in[imagev1.ImageRepositorySpec]("provider"):             clouds,
		in[imagev1.AlphabeticalPolicy]("order"):                 order,
		in[imagev1.NumericalPolicy]("order"):                    order,
		in[notificationv1.CrossNamespaceObjectReference]("kind"): {
			"Bucket", "GitRepository", "Kustomization", "HelmRelease", "HelmChart", "HelmRepository", "ImageRepository", "ImagePolicy",
			"ImageUpdateAutomation", "OCIRepository", "ArtifactGenerator", "ExternalArtifact",
		},
		in[notificationv1.ReceiverSpec]("type"): {
			"generic", "generic-hmac", "generic-oidc", "github", "gitlab", "bitbucket", "harbor", "dockerhub", "quay", "gcr", "nexus", "acr",
			"cdevents",
		},
		in[notificationv1beta3.ProviderSpec]("type"): {
			"slack", "discord", "msteams", "rocket", "generic", "generic-hmac", "github", "gitlab", "gitea", "giteapullrequestcomment",
			"bitbucketserver", "bitbucket", "azuredevops", "googlechat", "googlepubsub", "webex", "sentry", "azureeventhub", "telegram", "lark",
			"matrix", "opsgenie", "alertmanager", "grafana", "githubdispatch", "githubpullrequestcomment", "gitlabmergerequestcomment",
			"pagerduty", "datadog", "nats", "zulip", "otel",
		},
	}
}
