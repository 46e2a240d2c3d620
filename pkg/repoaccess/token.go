package repoaccess

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// An administrator of a cluster can read the token of its Flux. With a token that may push, an administrator could change the whole fleet.
// So Flux has its own token if the user gives one. Flux's own token stays until the user gives another one, and the token that pushes never
// replaces it. Without an own token, the token that pushes goes to the management cluster. It goes to workload clusters only if fleet.yaml
// allows that.

// ownTokenAnnotation marks a Secret with Flux's own token. Its value is the only server that gets the token.
const ownTokenAnnotation = "fleetctl.dev/flux-token-for" //nolint:gosec // the name of an annotation, no credential

// Token is the token with which the Flux of a cluster reads the fleet repo.
type Token struct {
	Username, Password string
	// Own tells whether the token is Flux's own, for the present server of the fleet repo.
	Own bool
	// Elsewhere is the server of the token if the token is Flux's own, and the fleet repo has another server now.
	Elsewhere string
}

// ByToken tells whether the remote of the fleet repo takes tokens.
func ByToken(s *session.Session) bool { return s.Fleet.Spec.Git.Scheme() == v1alpha1.GitHTTPS }

// Home returns the server of the fleet repo, which gets its tokens.
func Home(s *session.Session) string {
	u, err := s.Fleet.Spec.Git.ParseURL()
	if err != nil {
		return "" // Validate has refused it by now
	}
	return sameorigin.Of(u)
}

// tokenIn returns the token in a source Secret; nil if the Secret has none.
func tokenIn(s *session.Session, object *corev1.Secret) *Token {
	username, password := flux.PasswordIn(object)
	if password == "" {
		return nil
	}
	token := &Token{Username: username, Password: password}
	switch home := object.Annotations[ownTokenAnnotation]; home {
	case "":
	case Home(s):
		token.Own = true
	default:
		token.Elsewhere = home
	}
	return token
}

// ClusterToken returns the token of a management cluster's Flux; nil if the Flux has none.
func ClusterToken(ctx context.Context, s *session.Session, client *kube.Client) (*Token, error) {
	there := &corev1.Secret{}
	err := client.Get(ctx, kube.Key{Namespace: flux.Namespace, Name: flux.Name}, there)
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Wrap("look at what Flux reads with", err, "")
	}
	return tokenIn(s, there), nil
}

// Access makes what the Flux of each cluster needs to read the fleet repo and to decrypt its secrets.
type Access struct {
	Session  *session.Session
	Endpoint *Endpoint
	// Keys are the age keys of the fleet repo, the key in use first.
	Keys secret.Keys
	// Home is the management cluster, which may hand its work over to another one.
	Home *kube.Client
}

// KeptToken finds Flux's own token for the management cluster of client. It looks at that cluster, then at the management cluster that
// hands its work over, then at the credentials of the workload clusters in the fleet repo. It returns nil if none of them has an own
// token, or if the user has given a new one.
func (a *Access) KeptToken(ctx context.Context, client *kube.Client) (*Token, error) {
	s := a.Session
	if !ByToken(s) || s.GivenOwnToken() {
		return nil, nil
	}
	for _, c := range []*kube.Client{client, a.Home} {
		if c == nil {
			continue
		}
		if there, err := ClusterToken(ctx, s, c); err != nil || there != nil && there.Own {
			return there, err
		}
	}
	for _, f := range s.Folders(s.Opts.Dir) {
		file, err := ReadCredentialsFile(s.Opts.Dir, f.Credentials(f.Environment), a.Keys)
		if err != nil {
			return nil, err
		}
		there, err := TokenInFile(s, file)
		if err != nil || there != nil && there.Own {
			return there, err
		}
	}
	return nil, nil
}

// TokenInFile is the token that init has put into a file for workload clusters; nil where it has not, or nobody here can read it.
func TokenInFile(s *session.Session, file *CredentialsFile) (*Token, error) {
	if !file.managed() {
		return nil, nil
	}
	object, err := file.secret()
	if err != nil {
		return nil, err
	}
	return tokenIn(s, object), nil
}

// SourceSecret is what the Flux of a management cluster reads the fleet repo with; nil where it needs nothing.
func (a *Access) SourceSecret(ctx context.Context, client *kube.Client) (*corev1.Secret, error) {
	s := a.Session
	if a.Endpoint.Credentials.Empty() {
		return nil, nil
	}
	if ByToken(s) && FluxPushes(s) && s.Opts.Git.Token != "" {
		return flux.SourceSecret(flux.SourceCredentials{Username: s.PushAuth().Username, Password: s.Opts.Git.Token, CA: s.CA})
	}
	kept, err := a.KeptToken(ctx, client)
	if err != nil {
		return nil, err
	}
	made, _, err := a.secretWith(kept)
	return made, err
}

// FluxPushes tells whether the Flux of the management cluster pushes to the fleet repo, with what it reads it with.
func FluxPushes(s *session.Session) bool {
	return slices.Contains(s.Fleet.Spec.Flux.Components, "image-automation-controller")
}

// secretWith makes a source Secret of what this run was given, with the token that is kept in the place of the one that pushes. pushes
// tells whether it holds that one.
func (a *Access) secretWith(kept *Token) (made *corev1.Secret, pushes bool, err error) {
	s := a.Session
	credentials, own := a.Endpoint.Credentials, ByToken(s) && s.GivenOwnToken()
	if !own && kept != nil && kept.Own {
		credentials.Username, credentials.Password, own = kept.Username, kept.Password, true
	}
	if made, err = flux.SourceSecret(credentials); err != nil {
		return nil, false, err
	}
	if own {
		made.Annotations = map[string]string{ownTokenAnnotation: Home(s)}
	}
	return made, ByToken(s) && !own && credentials.Password != "", nil
}

// workloadSecret is what workload clusters read the fleet repo with, where kept is their token of their own; nil where they get nothing:
// there is only the token that pushes, and fleet.yaml does not agree to give it to them.
func (a *Access) workloadSecret(kept *Token) (*corev1.Secret, error) {
	made, pushes, err := a.secretWith(kept)
	if err != nil || pushes && !a.Session.Fleet.Spec.Git.SharePushToken {
		return nil, err
	}
	return made, nil
}

// Give gives the Flux of a cluster the fleet repo, and the keys to what is encrypted there.
func (a *Access) Give(ctx context.Context, client *kube.Client, sync []byte, detail func(string)) error {
	secret, err := a.SourceSecret(ctx, client)
	if err != nil {
		return err
	}
	system := flux.NewSystem(client)
	if err := a.giveKeys(ctx, system); err != nil {
		return err
	}
	return system.ApplySync(ctx, secret, sync, detail)
}

// giveKeys gives the Flux of a cluster the keys to what is encrypted in the fleet repo.
func (a *Access) giveKeys(ctx context.Context, system *flux.System) error {
	return system.AddKeys(ctx, fleetsecrets.WithKeys(a.Keys))
}
