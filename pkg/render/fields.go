package render

import kustypes "sigs.k8s.io/kustomize/api/types"

// NewKustomization is an empty kustomization.yaml: a pointer to the type whose fields are those that kustomize knows.
func NewKustomization() any { return &kustypes.Kustomization{} }
