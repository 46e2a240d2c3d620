package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// tokenSeconds is how long a process's token is valid. Clients read its file again every minute.
const tokenSeconds = 3600

// renewAfter is the fraction of a token's validity after which it is renewed. The kubelet uses the same.
const renewAfter = 0.8

// account is the ServiceAccount of a process. RBAC applies to the process as to a pod.
type account struct {
	client          client.Client
	namespace, name string
	// longest bounds the use of a token. 0 means no bound but its validity.
	longest time.Duration
}

// keep is how long a token that is valid for the given seconds is used.
func (a account) keep(seconds int64) time.Duration {
	keep := time.Duration(float64(seconds) * renewAfter * float64(time.Second))
	if a.longest > 0 {
		keep = min(keep, a.longest)
	}
	return keep
}

// token gets a token from the API server. An empty audience means the API server itself. The error is a *missingError if there is no such
// ServiceAccount.
func (a account) token(ctx context.Context, audience string, seconds int64) ([]byte, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name}}
	err := a.client.SubResource("token").Create(ctx, owner, request)
	if apierrors.IsNotFound(err) {
		return nil, &missingError{ref: objectRef{"ServiceAccount", a.namespace, a.name}}
	}
	if err != nil {
		return nil, fmt.Errorf("get a token for ServiceAccount %s/%s: %w", a.namespace, a.name, err)
	}
	return []byte(request.Status.Token), nil
}

// credentials are the files in dir that a process acts with: a token, and a kubeconfig that points to it.
type credentials struct {
	dir  string
	next time.Time // when to renew the token
}

func (c *credentials) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// refresh writes the files, unless the present ones need no renewal yet.
func (c *credentials) refresh(ctx context.Context, a account, server *rest.Config) error {
	if time.Now().Before(c.next) {
		return nil
	}
	token, err := a.token(ctx, "", tokenSeconds)
	if err != nil {
		return err
	}
	ca := server.CAData
	if len(ca) == 0 && server.CAFile != "" {
		if ca, err = os.ReadFile(server.CAFile); err != nil {
			return err
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["embedded"] = &clientcmdapi.Cluster{
		Server: server.Host, CertificateAuthorityData: ca, TLSServerName: server.ServerName,
	}
	config.AuthInfos["serviceaccount"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(c.dir, "token")}
	config.Contexts["embedded"] = &clientcmdapi.Context{Cluster: "embedded", AuthInfo: "serviceaccount", Namespace: a.namespace}
	config.CurrentContext = "embedded"
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	// The file names are the names in a pod's folder /var/run/secrets/kubernetes.io/serviceaccount.
	err = errors.Join(
		os.MkdirAll(c.dir, 0o700),
		atomicfile.WriteVolatile(filepath.Join(c.dir, "token"), token, 0o600),
		atomicfile.WriteVolatile(filepath.Join(c.dir, "ca.crt"), ca, 0o600),
		atomicfile.WriteVolatile(filepath.Join(c.dir, "namespace"), []byte(a.namespace), 0o600),
		atomicfile.WriteVolatile(c.kubeconfig(), raw, 0o600),
	)
	if err == nil {
		c.next = time.Now().Add(a.keep(tokenSeconds))
	}
	return err
}
