package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imageupdatev1 "github.com/fluxcd/image-automation-controller/api/v1"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// types has the kinds of every cluster. For a repo that does not have Flux's CRDs yet, it also has the kinds of the Flux that this fleetctl
// installs.
var types = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme, sourcev1.AddToScheme,
		notificationv1.AddToScheme, notificationv1beta3.AddToScheme, imagev1.AddToScheme, imageupdatev1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
})

// clusterScoped are the cluster-scoped kinds of every cluster.
var clusterScoped = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true, {Kind: "Node"}: true, {Kind: "PersistentVolume"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                                      true,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                                        true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                               true,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:                          true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                                   true,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                                 true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}:       true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:                 true,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:                        true,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                                   true,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                                 true,
}

// checkBuiltIn checks an object against the Go type of its kind.
func checkBuiltIn(gvk schema.GroupVersionKind, object map[string]any) ([]Problem, error) {
	known, err := types()
	if err != nil {
		return nil, err
	}
	if !known.Recognizes(gvk) {
		if versions := known.VersionsForGroupKind(gvk.GroupKind()); len(versions) > 0 {
			var served []string
			for _, v := range versions {
				served = append(served, v.Version)
			}
			return []Problem{{
				Type: Version, Path: "apiVersion", Summary: fmt.Sprintf("%s has no version %s", gvk.GroupKind(), gvk.Version),
				Hint: "there are: " + strings.Join(served, ", "),
			}}, nil
		}
		return unknownBuiltIn(known, gvk)
	}
	typed, err := known.New(gvk)
	if err != nil {
		return nil, err
	}
	problems, err := CheckFields(typed, object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Type == WrongType }) {
		problems = append(problems, strict(reflect.TypeOf(typed), object, "")...)
	}
	for _, e := range checkMeta(object, !clusterScoped[gvk.GroupKind()], nameRule(gvk)) {
		problems = append(problems, fromField(e))
	}
	return problems, nil
}

// unknownBuiltIn judges an object of an unknown kind. Nobody can add a kind to Kubernetes' own groups whose names have no dot. To groups
// below k8s.io a later release may add a kind, unless its name is nearly that of a known kind.
func unknownBuiltIn(known *runtime.Scheme, gvk schema.GroupVersionKind) ([]Problem, error) {
	if gone, _ := Gone(gvk); gone != 0 || !known.IsGroupRegistered(gvk.Group) {
		return nil, ErrUnknownKind
	}
	var kinds []string
	for kind := range known.KnownTypes(gvk.GroupVersion()) {
		if !strings.HasSuffix(kind, "List") && !strings.HasSuffix(kind, "Options") {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	p := Problem{Type: Version, Path: "kind", Summary: fmt.Sprintf("%s has no kind %s", gvk.GroupVersion(), gvk.Kind)}
	if nearest := diag.Nearest(gvk.Kind, kinds); nearest != "" {
		p.Hint = "did you mean " + nearest + "?"
	} else if strings.Contains(gvk.Group, ".") {
		return nil, ErrUnknownKind
	}
	return []Problem{p}, nil
}

// CheckFields checks an object against the fields of a Go type. typed is a pointer to a value of the type; CheckFields decodes the object
// into it. The error says that the object cannot be written as JSON.
func CheckFields(typed any, object map[string]any) ([]Problem, error) {
	if hasEndless(object) {
		if problems := endlessQuantities(reflect.TypeOf(typed), object, ""); len(problems) > 0 {
			return problems, nil
		}
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	strict, err := kjson.UnmarshalStrict(encoded, typed, kjson.DisallowUnknownFields)
	var problems []Problem
	for _, e := range strict {
		if at, ok := errors.AsType[kjson.FieldError](e); ok {
			_, name := splitLast(at.FieldPath())
			problems = append(problems, unknownField(at.FieldPath(), name, fieldsAt(reflect.TypeOf(typed), at.FieldPath())))
		}
	}
	if err == nil {
		return problems, nil
	}
	if texts := unreadable(reflect.TypeOf(typed), object, ""); len(texts) > 0 {
		return append(problems, texts...), nil
	}
	if texts := misread(object); len(texts) > 0 {
		return append(problems, texts...), nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		problems = append(problems, Problem{
			Type: WrongType, Path: wrong.Field,
			Summary: "found " + described(wrong.Value) + ", " + expected(wrong.Type),
		})
	} else {
		problems = append(problems, Problem{Type: WrongType, Summary: strings.TrimPrefix(err.Error(), "json: ")})
	}
	return problems, nil
}

// described names the type of a JSON value.
func described(value string) string {
	switch what, _, _ := strings.Cut(value, " "); what {
	case "array":
		return "a list"
	case "object":
		return "fields"
	case "string":
		return "text"
	case "bool":
		return "true or false"
	}
	return "a number"
}

func expected(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // Go's name of any other kind says what it is
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "expected a whole number"
	case reflect.Slice, reflect.Array:
		return "expected a list"
	case reflect.Map, reflect.Struct:
		return "expected fields"
	case reflect.String:
		return "expected text: put it in quotes"
	case reflect.Bool:
		return "expected true or false"
	}
	return "expected " + t.String()
}

// nameRule returns the rule for the names of a kind.
func nameRule(gvk schema.GroupVersionKind) apivalidation.ValidateNameFunc {
	switch {
	case gvk.Group == "" && gvk.Kind == "Namespace":
		return apivalidation.ValidateNamespaceName
	case gvk.Group == "" && gvk.Kind == "Service":
		return apivalidation.NameIsDNS1035Label
	case gvk.Group == "rbac.authorization.k8s.io":
		return isPathSegment
	}
	return nil
}

// isPathSegment checks that a name is valid in a URL.
func isPathSegment(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// checkMeta checks metadata. namespaced says whether the kind is namespaced. checkMeta does not report a missing namespace, because Flux
// may set one.
func checkMeta(object map[string]any, namespaced bool, nameRule apivalidation.ValidateNameFunc) field.ErrorList {
	if nameRule == nil {
		nameRule = apivalidation.NameIsDNSSubdomain
	}
	u := &unstructured.Unstructured{Object: object}
	at := field.NewPath("metadata")
	if namespaced && u.GetNamespace() == "" {
		copied := u.DeepCopy()
		copied.SetNamespace(metav1.NamespaceDefault)
		u = copied
	}
	errs := apivalidation.ValidateObjectMetaAccessor(u, namespaced, nameRule, at)
	for _, e := range errs {
		atKey(e, at.Child("labels"), u.GetLabels())
		atKey(e, at.Child("annotations"), u.GetAnnotations())
	}
	return errs
}

// metaFields returns the fields of metadata.
func metaFields() []string { return jsonFields(reflect.TypeFor[metav1.ObjectMeta]()) }

// fieldsAt returns the JSON names of the fields that a Go type has beside the field at path.
func fieldsAt(t reflect.Type, path string) []string {
	parent, _ := splitLast(path)
	for step := range steps(parent) {
		t = inner(t)
		switch t.Kind() { //nolint:exhaustive // other kinds have no fields
		case reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
			continue
		case reflect.Struct:
		default:
			return nil
		}
		next, ok := jsonField(t, step)
		if !ok {
			return nil
		}
		t = next
	}
	if t = inner(t); t.Kind() != reflect.Struct {
		return nil
	}
	return jsonFields(t)
}

func inner(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// jsonFields returns the JSON names of the fields of a struct, including those of embedded structs.
func jsonFields(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}

func jsonField(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}
