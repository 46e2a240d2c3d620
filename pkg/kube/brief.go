package kube

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// brief asks for the metadata of the written object. Without it, the answer to a write is the whole object again, which the API server has
// to encode, and the client to decode.
const brief = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"

// CreateBriefly creates obj, and returns the kind and the metadata of the created object. It is for callers that create many objects.
func (c *Client) CreateBriefly(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	request, err := c.briefly(ctx, http.MethodPost, obj)
	if err != nil {
		return nil, err
	}
	answer := request.Do(ctx)
	content, err := answer.Raw()
	if err != nil {
		return nil, answer.Error() // this error has the server's message
	}
	created := &unstructured.Unstructured{}
	if created.UnmarshalJSON(content) != nil {
		return nil, fmt.Errorf("create %s: the answer is not an object", RefOf(obj)) // the error may quote a Secret
	}
	created.SetGroupVersionKind(obj.GroupVersionKind())
	return created, nil
}

// UpdateStatusBriefly replaces the status of an object by that of obj. Apart from the status, obj needs only its kind, name and namespace,
// and the resource version and UID that the object must have.
func (c *Client) UpdateStatusBriefly(ctx context.Context, obj *unstructured.Unstructured) error {
	request, err := c.briefly(ctx, http.MethodPut, obj)
	if err != nil {
		return err
	}
	return request.Name(obj.GetName()).SubResource("status").Do(ctx).Error()
}

// briefly returns a request with obj as its body, to the path of the objects of its kind in its namespace. The API server drops unknown
// fields without searching for them first: the search serves warnings, which this client ignores.
func (c *Client) briefly(ctx context.Context, method string, obj *unstructured.Unstructured) (*rest.Request, error) {
	mapping, err := c.mappingOf(ctx, obj)
	if err != nil {
		return nil, err
	}
	body, err := obj.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: it is not an object", RefOf(obj)) // the error may quote a Secret
	}
	at := mapping.Resource
	prefix := []string{"/apis", at.Group, at.Version}
	if at.Group == "" {
		prefix = []string{"/api", at.Version}
	}
	return c.discovery.RESTClient().Verb(method).AbsPath(prefix...).
		NamespaceIfScoped(obj.GetNamespace(), mapping.Scope.Name() == meta.RESTScopeNameNamespace).Resource(at.Resource).
		Param("fieldValidation", metav1.FieldValidationIgnore).
		SetHeader("Accept", brief).SetHeader("Content-Type", "application/json").Body(body), nil
}

// mappingOf is Mapping for the kind of obj, and keeps the answer.
func (c *Client) mappingOf(ctx context.Context, obj *unstructured.Unstructured) (*meta.RESTMapping, error) {
	gvk := obj.GroupVersionKind()
	known, _ := c.mappings.Load(gvk)
	if mapping, ok := known.(*meta.RESTMapping); ok {
		return mapping, nil
	}
	mapping, err := c.Mapping(ctx, gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	c.mappings.Store(gvk, mapping)
	return mapping, nil
}
