package schema

import (
	"maps"
	"reflect"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldOf is a field of a Go type, by its name in JSON.
type fieldOf struct {
	of   reflect.Type
	name string
}

func in[T any](name string) fieldOf { return fieldOf{reflect.TypeFor[T](), name} }

// choices are the values that a field accepts, or that each item of a list accepts.
var choices = sync.OnceValue(func() map[fieldOf][]string {
	protocols, retain := []string{"TCP", "UDP", "SCTP"}, []string{"Retain", "Delete"}
	quotaScopes := []string{
		"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass",
	}
	all := map[fieldOf][]string{
		in[corev1.ServiceSpec]("type"):                            {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"},
		in[corev1.ServiceSpec]("sessionAffinity"):                 {"None", "ClientIP"},
		in[corev1.ServiceSpec]("externalTrafficPolicy"):           {"Cluster", "Local"},
		in[corev1.ServiceSpec]("internalTrafficPolicy"):           {"Cluster", "Local"},
		in[corev1.ServicePort]("protocol"):                        protocols,
		in[corev1.ContainerPort]("protocol"):                      protocols,
		in[networkingv1.NetworkPolicyPort]("protocol"):            protocols,
		in[networkingv1.NetworkPolicySpec]("policyTypes"):         {"Ingress", "Egress"},
		in[networkingv1.HTTPIngressPath]("pathType"):              {"Exact", "Prefix", "ImplementationSpecific"},
		in[corev1.Container]("imagePullPolicy"):                   {"Always", "IfNotPresent", "Never"},
		in[corev1.Container]("terminationMessagePolicy"):          {"File", "FallbackToLogsOnError"},
		in[corev1.PodSpec]("restartPolicy"):                       {"Always", "OnFailure", "Never"},
		in[corev1.PodSpec]("dnsPolicy"):                           {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
		in[corev1.PodSpec]("preemptionPolicy"):                    {"PreemptLowerPriority", "Never"},
		in[corev1.HTTPGetAction]("scheme"):                        {"HTTP", "HTTPS"},
		in[corev1.Toleration]("effect"):                           {"NoSchedule", "PreferNoSchedule", "NoExecute"},
		in[corev1.Toleration]("operator"):                         {"Exists", "Equal", "Lt", "Gt"},
		in[corev1.TopologySpreadConstraint]("whenUnsatisfiable"):  {"DoNotSchedule", "ScheduleAnyway"},
		in[corev1.NodeSelectorRequirement]("operator"):            {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"},
		in[metav1.LabelSelectorRequirement]("operator"):           {"In", "NotIn", "Exists", "DoesNotExist"},
		in[corev1.PersistentVolumeClaimSpec]("accessModes"):       {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"},
		in[corev1.PersistentVolumeClaimSpec]("volumeMode"):        {"Filesystem", "Block"},
		in[corev1.PersistentVolumeSpec]("accessModes"):            {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"},
		in[storagev1.StorageClass]("reclaimPolicy"):               retain,
		in[storagev1.StorageClass]("volumeBindingMode"):           {"Immediate", "WaitForFirstConsumer"},
		in[appsv1.DeploymentStrategy]("type"):                     {"Recreate", "RollingUpdate"},
		in[appsv1.StatefulSetUpdateStrategy]("type"):              {"RollingUpdate", "OnDelete"},
		in[appsv1.DaemonSetUpdateStrategy]("type"):                {"RollingUpdate", "OnDelete"},
		in[appsv1.StatefulSetSpec]("podManagementPolicy"):         {"OrderedReady", "Parallel"},
		in[batchv1.CronJobSpec]("concurrencyPolicy"):              {"Allow", "Forbid", "Replace"},
		in[batchv1.JobSpec]("completionMode"):                     {"NonIndexed", "Indexed"},
		in[rbacv1.Subject]("kind"):                                {"User", "Group", "ServiceAccount"},
		in[rbacv1.RoleRef]("kind"):                                {"Role", "ClusterRole"},
		in[autoscalingv2.MetricSpec]("type"):                      {"Resource", "ContainerResource", "Pods", "Object", "External"},
		in[admissionv1.ValidatingWebhook]("failurePolicy"):        {"Ignore", "Fail"},
		in[admissionv1.MutatingWebhook]("failurePolicy"):          {"Ignore", "Fail"},
		in[admissionv1.ValidatingWebhook]("sideEffects"):          {"None", "NoneOnDryRun"},
		in[admissionv1.MutatingWebhook]("sideEffects"):            {"None", "NoneOnDryRun"},
		in[corev1.Container]("restartPolicy"):                     {"Always", "OnFailure", "Never"},
		in[corev1.ContainerRestartRule]("action"):                 {"Restart", "RestartAllContainers"},
		in[corev1.ContainerRestartRuleOnExitCodes]("operator"):    {"In", "NotIn"},
		in[corev1.ContainerResizePolicy]("resourceName"):          {"cpu", "memory"},
		in[corev1.ContainerResizePolicy]("restartPolicy"):         {"NotRequired", "RestartContainer"},
		in[corev1.PodOS]("name"):                                  {"linux", "windows"},
		in[corev1.PodSecurityContext]("fsGroupChangePolicy"):      {"Always", "OnRootMismatch"},
		in[corev1.PodSecurityContext]("seLinuxChangePolicy"):      {"MountOption", "Recursive"},
		in[corev1.PodSecurityContext]("supplementalGroupsPolicy"): {"Merge", "Strict"},
		in[corev1.SecurityContext]("procMount"):                   {"Default", "Unmasked"},
		in[corev1.SeccompProfile]("type"):                         {"RuntimeDefault", "Localhost", "Unconfined"},
		in[corev1.AppArmorProfile]("type"):                        {"RuntimeDefault", "Localhost", "Unconfined"},
		in[corev1.HostPathVolumeSource]("type"): {
			"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice",
		},
		in[corev1.ImageVolumeSource]("pullPolicy"):                                {"Always", "IfNotPresent", "Never"},
		in[corev1.VolumeMount]("mountPropagation"):                                {"None", "HostToContainer", "Bidirectional"},
		in[corev1.VolumeMount]("recursiveReadOnly"):                               {"Disabled", "IfPossible", "Enabled"},
		in[corev1.AzureDiskVolumeSource]("cachingMode"):                           {"None", "ReadOnly", "ReadWrite"},
		in[corev1.AzureDiskVolumeSource]("kind"):                                  {"Shared", "Dedicated", "Managed"},
		in[corev1.TopologySpreadConstraint]("nodeAffinityPolicy"):                 {"Honor", "Ignore"},
		in[corev1.TopologySpreadConstraint]("nodeTaintsPolicy"):                   {"Honor", "Ignore"},
		in[corev1.ServiceSpec]("ipFamilies"):                                      {"IPv4", "IPv6"},
		in[corev1.ServiceSpec]("ipFamilyPolicy"):                                  {"SingleStack", "PreferDualStack", "RequireDualStack"},
		in[corev1.PersistentVolumeSpec]("volumeMode"):                             {"Filesystem", "Block"},
		in[corev1.PersistentVolumeSpec]("persistentVolumeReclaimPolicy"):          {"Retain", "Delete", "Recycle"},
		in[corev1.ResourceQuotaSpec]("scopes"):                                    quotaScopes,
		in[corev1.ScopedResourceSelectorRequirement]("scopeName"):                 quotaScopes,
		in[corev1.ScopedResourceSelectorRequirement]("operator"):                  {"In", "NotIn", "Exists", "DoesNotExist"},
		in[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy]("whenDeleted"): retain,
		in[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy]("whenScaled"):  retain,
		in[batchv1.JobSpec]("podReplacementPolicy"):                               {"TerminatingOrFailed", "Failed"},
		in[batchv1.PodFailurePolicyRule]("action"):                                {"FailJob", "FailIndex", "Ignore", "Count"},
		in[batchv1.PodFailurePolicyOnExitCodesRequirement]("operator"):            {"In", "NotIn"},
		in[policyv1.PodDisruptionBudgetSpec]("unhealthyPodEvictionPolicy"):        {"IfHealthyBudget", "AlwaysAllow"},
		in[autoscalingv2.MetricTarget]("type"):                                    {"Utilization", "Value", "AverageValue"},
		in[autoscalingv2.HPAScalingPolicy]("type"):                                {"Pods", "Percent"},
		in[autoscalingv2.HPAScalingRules]("selectPolicy"):                         {"Max", "Min", "Disabled"},
		in[admissionv1.ValidatingWebhook]("matchPolicy"):                          {"Exact", "Equivalent"},
		in[admissionv1.MutatingWebhook]("matchPolicy"):                            {"Exact", "Equivalent"},
		in[admissionv1.MutatingWebhook]("reinvocationPolicy"):                     {"Never", "IfNeeded"},
		in[admissionv1.MatchResources]("matchPolicy"):                             {"Exact", "Equivalent"},
		in[admissionv1.ParamRef]("parameterNotFoundAction"):                       {"Allow", "Deny"},
		in[admissionv1.Rule]("scope"):                                             {"Cluster", "Namespaced", "*"},
		in[admissionv1.RuleWithOperations]("operations"):                          {"CREATE", "UPDATE", "DELETE", "CONNECT", "*"},
		in[admissionv1.ValidatingAdmissionPolicySpec]("failurePolicy"):            {"Ignore", "Fail"},
		in[admissionv1.ValidatingAdmissionPolicyBindingSpec]("validationActions"): {"Deny", "Warn", "Audit"},
		in[admissionv1.MutatingAdmissionPolicySpec]("failurePolicy"):              {"Ignore", "Fail"},
		in[admissionv1.MutatingAdmissionPolicySpec]("reinvocationPolicy"):         {"Never", "IfNeeded"},
		in[admissionv1.Mutation]("patchType"):                                     {"ApplyConfiguration", "JSONPatch"},
		in[schedulingv1.PriorityClass]("preemptionPolicy"):                        {"PreemptLowerPriority", "Never"},
		in[batchv1.PodFailurePolicyOnPodConditionsPattern]("status"):              {"True", "False", "Unknown"},
		in[storagev1.CSIDriverSpec]("fsGroupPolicy"):                              {"ReadWriteOnceWithFSType", "File", "None"},
		in[storagev1.CSIDriverSpec]("volumeLifecycleModes"):                       {"Persistent", "Ephemeral"},
		in[apiextensionsv1.CustomResourceDefinitionSpec]("scope"):                 {"Namespaced", "Cluster"},
		in[notificationv1beta3.AlertSpec]("eventSeverity"):                        {"info", "error"},
		in[kustomizev1.CrossNamespaceSourceReference]("kind"): {
			"GitRepository", "OCIRepository", "Bucket", "ExternalArtifact",
		},
	}
	maps.Copy(all, fluxChoices())
	return all
})
