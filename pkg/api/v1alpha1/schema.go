package v1alpha1

//go:generate go run ./internal/genschema
