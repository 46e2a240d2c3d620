package flux

import "context"

// Applied is what a Flux Kustomization in flux-system has made of a commit.
type Applied struct {
	// Commit that it has applied last; "" if none.
	Commit string
	// Missing says what is not healthy of what it applied, or that it is at another commit; empty means that all is well.
	Missing []string
}

// Applied looks at the Flux Kustomization called name, and at all that it applied, at one moment. commit is the one that it should have
// applied; "" stands for whatever it has.
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
