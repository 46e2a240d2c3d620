package flux

import "context"

// Applied is the state of a Flux Kustomization in flux-system.
type Applied struct {
	// Commit that the Kustomization has last applied; "" if none.
	Commit string
	// Missing lists the applied objects that are not healthy, and the Kustomization if it has applied another commit. It is empty if all
	// is well.
	Missing []string
}

// Applied reads the Flux Kustomization called name and all objects that it applied. commit is the expected commit; "" accepts any.
func (s *System) Applied(ctx context.Context, name, commit string) (*Applied, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	out := &Applied{Commit: commitOf(w.applied(name))}
	if commit == "" {
		commit = out.Commit
	}
	for _, m := range w.below(name, commit) {
		out.Missing = append(out.Missing, m.String())
	}
	return out, nil
}
