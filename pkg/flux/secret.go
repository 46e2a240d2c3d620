package flux

import (
	"errors"

	"github.com/fluxcd/flux2/v2/pkg/manifestgen/sourcesecret"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SourceCredentials are what Flux needs to read the fleet repo: Username and Password (a token, or the basic credentials of the
// local server), or Identity with KnownHosts.
type SourceCredentials struct {
	// Username and Password for http and https. A token is a Password.
	Username, Password string
	// CA is PEM of the authorities that an https server is checked against. Empty: the system's.
	CA []byte
	// Identity is a private ssh key in PEM, IdentityPub its public half, KnownHosts the pinned keys of the server.
	Identity, IdentityPub, KnownHosts []byte
}

// String keeps the values out of logs.
func (SourceCredentials) String() string { return "(credentials)" }

// GoString keeps the values out of %#v.
func (SourceCredentials) GoString() string { return "(credentials)" }

// Empty tells whether nothing is set: a repository that everybody may read needs no secret.
func (c SourceCredentials) Empty() bool {
	return c.Username == "" && c.Password == "" && len(c.CA) == 0 && len(c.Identity) == 0
}

// SourceSecret is the secret flux-system/flux-system that GenerateSync refers to. It never goes into Git. It returns an error
// where the credentials are incomplete, mixed or, for ssh, come without pinned host keys.
//
// flux2's own generator is not used: it scans the ssh server and trusts whatever key it meets.
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

// KeySecret is the Secret with the private age keys, as a file of age-keygen has them, that Flux decrypts with.
func KeySecret(keys []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: DecryptionSecret, Namespace: Namespace},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{DecryptionKey: keys},
	}
}
