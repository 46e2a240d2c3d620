package schema

import (
	"fmt"

	"k8s.io/apiserver/pkg/cel/environment"
)

// ParseCEL tells why a text is no expression of CEL. It does not judge names and types.
func ParseCEL(text string) error {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	if err != nil {
		return fmt.Errorf("prepare CEL: %w", err)
	}
	if _, issues := env.Parse(text); issues != nil {
		return issues.Err()
	}
	return nil
}
