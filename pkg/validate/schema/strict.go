package schema

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imageupdatev1 "github.com/fluxcd/image-automation-controller/api/v1"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The Go types of the kinds of every cluster do not say which values their fields accept; the API server has that in its code. This file
// has these rules for the kinds that people write.

// required are the fields of a type that must be set. A required list must not be empty.
var required = sync.OnceValue(func() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[appsv1.Deployment](): {"spec"}, reflect.TypeFor[appsv1.StatefulSet](): {"spec"},
		reflect.TypeFor[appsv1.DaemonSet](): {"spec"},
		reflect.TypeFor[batchv1.Job]():      {"spec"}, reflect.TypeFor[batchv1.CronJob](): {"spec"}, reflect.TypeFor[corev1.Pod](): {"spec"},
		reflect.TypeFor[appsv1.DeploymentSpec]():                        {"selector", "template"},
		reflect.TypeFor[appsv1.StatefulSetSpec]():                       {"selector", "template"},
		reflect.TypeFor[appsv1.DaemonSetSpec]():                         {"selector", "template"},
		reflect.TypeFor[appsv1.ReplicaSetSpec]():                        {"selector"},
		reflect.TypeFor[batchv1.JobSpec]():                              {"template"},
		reflect.TypeFor[batchv1.CronJobSpec]():                          {"schedule", "jobTemplate"},
		reflect.TypeFor[corev1.PodSpec]():                               {"containers"},
		reflect.TypeFor[corev1.Container]():                             {"name", "image"},
		reflect.TypeFor[corev1.ContainerPort]():                         {"containerPort"},
		reflect.TypeFor[corev1.EnvVar]():                                {"name"},
		reflect.TypeFor[corev1.Volume]():                                {"name"},
		reflect.TypeFor[corev1.VolumeMount]():                           {"name", "mountPath"},
		reflect.TypeFor[corev1.SecretKeySelector]():                     {"key"},
		reflect.TypeFor[corev1.ConfigMapKeySelector]():                  {"key"},
		reflect.TypeFor[corev1.KeyToPath]():                             {"key", "path"},
		reflect.TypeFor[corev1.HTTPGetAction]():                         {"port"},
		reflect.TypeFor[corev1.TCPSocketAction]():                       {"port"},
		reflect.TypeFor[corev1.HostPathVolumeSource]():                  {"path"},
		reflect.TypeFor[corev1.ServicePort]():                           {"port"},
		reflect.TypeFor[corev1.LimitRangeItem]():                        {"type"},
		reflect.TypeFor[corev1.TopologySpreadConstraint]():              {"maxSkew", "topologyKey", "whenUnsatisfiable"},
		reflect.TypeFor[corev1.PodAffinityTerm]():                       {"topologyKey"},
		reflect.TypeFor[rbacv1.RoleBinding]():                           {"roleRef"},
		reflect.TypeFor[rbacv1.ClusterRoleBinding]():                    {"roleRef"},
		reflect.TypeFor[rbacv1.RoleRef]():                               {"kind", "name"},
		reflect.TypeFor[rbacv1.Subject]():                               {"kind", "name"},
		reflect.TypeFor[rbacv1.PolicyRule]():                            {"verbs"},
		reflect.TypeFor[networkingv1.HTTPIngressPath]():                 {"pathType", "backend"},
		reflect.TypeFor[networkingv1.IngressServiceBackend]():           {"name", "port"},
		reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerSpec]():    {"scaleTargetRef", "maxReplicas"},
		reflect.TypeFor[autoscalingv2.CrossVersionObjectReference]():    {"kind", "name"},
		reflect.TypeFor[autoscalingv2.MetricSpec]():                     {"type"},
		reflect.TypeFor[storagev1.StorageClass]():                       {"provisioner"},
		reflect.TypeFor[schedulingv1.PriorityClass]():                   {"value"},
		reflect.TypeFor[admissionv1.ValidatingWebhook]():                {"name", "clientConfig", "sideEffects", "admissionReviewVersions"},
		reflect.TypeFor[admissionv1.MutatingWebhook]():                  {"name", "clientConfig", "sideEffects", "admissionReviewVersions"},
		reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionSpec](): {"group", "names", "scope", "versions"},
		reflect.TypeFor[metav1.LabelSelectorRequirement]():              {"key", "operator"},
		reflect.TypeFor[kustomizev1.Kustomization]():                    {"spec"},
		reflect.TypeFor[kustomizev1.KustomizationSpec]():                {"interval", "prune", "sourceRef"},
		reflect.TypeFor[kustomizev1.CrossNamespaceSourceReference]():    {"kind", "name"},
		reflect.TypeFor[helmv2.HelmRelease]():                           {"spec"},
		reflect.TypeFor[helmv2.HelmReleaseSpec]():                       {"interval"},
		reflect.TypeFor[sourcev1.GitRepository]():                       {"spec"},
		reflect.TypeFor[sourcev1.GitRepositorySpec]():                   {"url", "interval"},
		reflect.TypeFor[sourcev1.HelmRepositorySpec]():                  {"url"},
		reflect.TypeFor[sourcev1.OCIRepositorySpec]():                   {"url", "interval"},
		reflect.TypeFor[sourcev1.HelmChartSpec]():                       {"chart", "sourceRef", "interval"},
		reflect.TypeFor[notificationv1beta3.AlertSpec]():                {"eventSources", "providerRef"},
		reflect.TypeFor[notificationv1beta3.ProviderSpec]():             {"type"},
		reflect.TypeFor[notificationv1.ReceiverSpec]():                  {"resources", "type"},
		reflect.TypeFor[notificationv1.CrossNamespaceObjectReference](): {"kind", "name"},
		reflect.TypeFor[imagev1.ImagePolicySpec]():                      {"imageRepositoryRef", "policy"},
		reflect.TypeFor[imagev1.ImageRepositorySpec]():                  {"image", "interval"},
		reflect.TypeFor[imageupdatev1.ImageUpdateAutomationSpec]():      {"interval", "sourceRef"},
	}
})

// span is the range of a number. A most of 0 means no upper bound.
type span struct{ least, most int64 }

// The ranges of port numbers, of numbers from 0 on, and of numbers from 1 on.
var (
	portNumber = span{1, 65535}
	from0      = span{least: 0}
	from1      = span{least: 1}
)

// spans are the ranges of the numbers in fields.
var spans = sync.OnceValue(func() map[fieldOf]span {
	return map[fieldOf]span{
		in[corev1.ServicePort]("port"): portNumber, in[corev1.ServicePort]("targetPort"): portNumber,
		in[corev1.ServicePort]("nodePort"):        {0, 65535},
		in[corev1.ContainerPort]("containerPort"): portNumber, in[corev1.ContainerPort]("hostPort"): {0, 65535},
		in[corev1.HTTPGetAction]("port"): portNumber, in[corev1.TCPSocketAction]("port"): portNumber,
		in[networkingv1.ServiceBackendPort]("number"): portNumber,
		in[appsv1.DeploymentSpec]("replicas"):         from0, in[appsv1.StatefulSetSpec]("replicas"): from0,
		in[appsv1.ReplicaSetSpec]("replicas"):             from0,
		in[appsv1.DeploymentSpec]("revisionHistoryLimit"): from0, in[appsv1.DeploymentSpec]("minReadySeconds"): from0,
		in[appsv1.DeploymentSpec]("progressDeadlineSeconds"): from0, in[appsv1.StatefulSetSpec]("revisionHistoryLimit"): from0,
		in[appsv1.DaemonSetSpec]("revisionHistoryLimit"): from0, in[appsv1.DaemonSetSpec]("minReadySeconds"): from0,
		in[batchv1.JobSpec]("parallelism"): from0, in[batchv1.JobSpec]("completions"): from0, in[batchv1.JobSpec]("backoffLimit"): from0,
		in[batchv1.JobSpec]("activeDeadlineSeconds"): from0, in[batchv1.JobSpec]("ttlSecondsAfterFinished"): from0,
		in[batchv1.CronJobSpec]("successfulJobsHistoryLimit"): from0, in[batchv1.CronJobSpec]("failedJobsHistoryLimit"): from0,
		in[batchv1.CronJobSpec]("startingDeadlineSeconds"):  from0,
		in[corev1.PodSpec]("terminationGracePeriodSeconds"): from0, in[corev1.TopologySpreadConstraint]("maxSkew"): from1,
		in[corev1.Probe]("initialDelaySeconds"): from0, in[corev1.Probe]("periodSeconds"): from0, in[corev1.Probe]("timeoutSeconds"): from0,
		in[corev1.Probe]("successThreshold"): from0, in[corev1.Probe]("failureThreshold"): from0,
		in[autoscalingv2.HorizontalPodAutoscalerSpec]("maxReplicas"): from1, in[autoscalingv2.HorizontalPodAutoscalerSpec]("minReplicas"): from0,
		in[corev1.WeightedPodAffinityTerm]("weight"): {1, 100}, in[corev1.PreferredSchedulingTerm]("weight"): {1, 100},
		in[autoscalingv2.HPAScalingRules]("stabilizationWindowSeconds"): {0, 3600},
		in[autoscalingv2.HPAScalingPolicy]("periodSeconds"):             {1, 1800}, in[autoscalingv2.HPAScalingPolicy]("value"): from1,
		in[schedulingv1.PriorityClass]("value"):             {-2147483648, 1000000000},
		in[admissionv1.ValidatingWebhook]("timeoutSeconds"): {1, 30}, in[admissionv1.MutatingWebhook]("timeoutSeconds"): {1, 30},
	}
})

// pattern is the pattern of the text in a field, with a hint.
type pattern struct {
	text *regexp.Regexp
	hint string
}

// patterns are the patterns of Flux's CRDs, which its Go types lack.
var patterns = sync.OnceValue(func() map[fieldOf]pattern {
	return map[fieldOf]pattern{
		in[sourcev1.GitRepositorySpec]("url"):  {regexp.MustCompile(`^(http|https|ssh)://`), "begin with https:// or ssh://"},
		in[sourcev1.HelmRepositorySpec]("url"): {regexp.MustCompile(`^(http|https|oci)://`), "begin with https:// or oci://"},
		in[sourcev1.OCIRepositorySpec]("url"):  {regexp.MustCompile(`^oci://`), "begin with oci://"},
	}
})

// strict checks required fields and the values of fields, by the Go type of each part. Other checks report values of a wrong type.
func strict(t reflect.Type, value any, path string) []Problem {
	t = inner(t)
	switch t.Kind() { //nolint:exhaustive // other kinds have no fields
	case reflect.Slice, reflect.Array:
		items, _ := value.([]any)
		var out []Problem
		for i, item := range items {
			out = append(out, strict(t.Elem(), item, path+"["+strconv.Itoa(i)+"]")...)
		}
		return out
	case reflect.Map:
		return nil // these are maps of texts, except for resources
	case reflect.Struct:
	default:
		return nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	var out []Problem
	for _, name := range required()[t] {
		if isMissing(fields[name]) && !isMisspelt(t, name, fields) {
			out = append(out, Problem{Type: Required, Path: below(path, name), Summary: "required field is missing"})
		}
	}
	for _, name := range sortedNames(fields) {
		at, held := below(path, name), fieldOf{t, name}
		if path == "" && (name == "status" || name == "metadata") {
			continue // nobody writes these fields, or other checks judge them
		}
		out = append(out, one(held, fields[name], at)...)
		if next, ok := jsonField(t, name); ok {
			out = append(out, strict(next, fields[name], at)...)
		}
	}
	return out
}

// isMisspelt tells whether a missing field is present with a misspelt name. The finding is then about that name.
func isMisspelt(t reflect.Type, name string, fields map[string]any) bool {
	for other := range fields {
		if _, known := jsonField(t, other); !known && diag.Nearest(other, jsonFields(t)) == name {
			return true
		}
	}
	return false
}

// one checks the value of one field.
func one(held fieldOf, value any, at string) []Problem {
	if allowed := choices()[held]; allowed != nil {
		all, list := value.([]any)
		if !list {
			all = []any{value}
		}
		for _, v := range all {
			text, ok := v.(string)
			if !ok || text == "" || slices.Contains(allowed, text) || strings.Contains(text, "${") {
				continue
			}
			hint := "one of: " + strings.Join(allowed, ", ")
			if nearest := diag.Nearest(text, allowed); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			return []Problem{{Type: Invalid, Path: at, Summary: fmt.Sprintf("%.60q is not supported", text), Hint: hint}}
		}
	}
	if like, ok := patterns()[held]; ok {
		if text, is := value.(string); is && text != "" && !strings.Contains(text, "${") && !like.text.MatchString(text) {
			return []Problem{{Type: Invalid, Path: at, Summary: "the address has no scheme that is possible here", Hint: like.hint}}
		}
	}
	limits, ok := spans()[held]
	n, number := wholeNumber(value)
	switch {
	case !ok || !number:
	case n < limits.least:
		return []Problem{{Type: Invalid, Path: at, Summary: fmt.Sprintf("%d is less than %d", n, limits.least)}}
	case limits.most != 0 && n > limits.most:
		return []Problem{{Type: Invalid, Path: at, Summary: fmt.Sprintf("%d is more than %d", n, limits.most)}}
	}
	return nil
}

func isMissing(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	}
	return false
}

func wholeNumber(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedNames(fields map[string]any) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
