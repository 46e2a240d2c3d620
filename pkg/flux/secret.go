package flux

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/flux2/v2/pkg/manifestgen/sourcesecret"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// SourceCredentials are the credentials with which Flux reads the fleet repo: Username and Password, or Identity with KnownHosts.
type SourceCredentials struct {
	// Username and Password for http and https. A token is a Password.
	Username, Password string
	// CA has the trusted certificate authorities of an https server, in PEM. Empty means the system's.
	CA []byte
	// Identity is a private ssh key in PEM, IdentityPub its public half, KnownHosts the pinned keys of the server.
	Identity, IdentityPub, KnownHosts []byte
}

// String keeps the values out of logs.
func (SourceCredentials) String() string { return "(credentials)" }

// GoString keeps the values out of %#v.
func (SourceCredentials) GoString() string { return "(credentials)" }

// Empty tells whether no field is set. A public repository needs no credentials.
func (c SourceCredentials) Empty() bool {
	return c.Username == "" && c.Password == "" && len(c.CA) == 0 && len(c.Identity) == 0
}

// SourceSecret returns the Secret flux-system/flux-system, to which GenerateSync refers. It never goes into Git. SourceSecret fails if
// the credentials are incomplete or mixed, or, for ssh, have no pinned host keys.
//
// flux2's own generator is not used, because it scans the ssh server and trusts any key.
func SourceSecret(c SourceCredentials) (*corev1.Secret, error) {
	data := map[string][]byte{}
	if len(c.Identity) > 0 {
		switch {
		case c.Password != "" || c.Username != "":
			return nil, errors.New("make source secret: an ssh key and a password at once")
		case len(c.KnownHosts) == 0:
			return nil, errors.New("make source secret: an ssh key without the server's host keys")
		case len(c.IdentityPub) == 0:
			return nil, errors.New("make source secret: an ssh key without its public half")
		}
		data[sourcesecret.PrivateKeySecretKey] = c.Identity
		data[sourcesecret.PublicKeySecretKey] = c.IdentityPub
		data[sourcesecret.KnownHostsSecretKey] = c.KnownHosts
	}
	if (c.Username == "") != (c.Password == "") {
		return nil, errors.New("make source secret: username and password go together")
	}
	if c.Username != "" {
		data[sourcesecret.UsernameSecretKey] = []byte(c.Username)
		data[sourcesecret.PasswordSecretKey] = []byte(c.Password)
	}
	if len(c.CA) > 0 {
		data[sourcesecret.CACrtSecretKey] = c.CA
	}
	if len(data) == 0 {
		return nil, errors.New("make source secret: no credentials")
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: Namespace},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}, nil
}

// PasswordIn returns the user name and the password in a source Secret. Both are "" if it has none.
func PasswordIn(secret *corev1.Secret) (username, password string) {
	value := func(key string) string {
		if text, ok := secret.StringData[key]; ok { // StringData takes precedence, as in the API server
			return text
		}
		return string(secret.Data[key])
	}
	return value(sourcesecret.UsernameSecretKey), value(sourcesecret.PasswordSecretKey)
}

// AddKeys replaces the private age keys of a cluster's Flux by the result of merge. merge gets the present keys, in the format of
// age-keygen, or nil without any. If the Secret changes at the same moment, AddKeys calls merge again. No error quotes a key.
func (s *System) AddKeys(ctx context.Context, merge func(there []byte) ([]byte, error)) error {
	key := types.NamespacedName{Namespace: Namespace, Name: DecryptionSecret}
	op := fmt.Sprintf("give the Secret %s its keys", key)
	err := retry.OnError(retry.DefaultBackoff, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) },
		func() error {
			there := &corev1.Secret{}
			err := s.client.Get(ctx, key, there)
			absent := kube.IsAbsent(err)
			if err != nil && !absent {
				return err
			}
			keys, err := merge(there.Data[DecryptionKey])
			switch {
			case err != nil:
				return err
			case absent:
				return s.client.Create(ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}, Type: corev1.SecretTypeOpaque,
					Data: map[string][]byte{DecryptionKey: keys},
				}, client.FieldOwner(kube.FieldManager))
			case bytes.Equal(keys, there.Data[DecryptionKey]):
				return nil
			}
			if there.Data == nil {
				there.Data = map[string][]byte{}
			}
			there.Data[DecryptionKey] = keys
			return s.client.Update(ctx, there, client.FieldOwner(kube.FieldManager)) // a conflict if the Secret has changed since it was read
		})
	return diag.Wrap(op, err, "")
}
