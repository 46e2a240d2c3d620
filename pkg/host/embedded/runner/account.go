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

// tokenSeconds is how long a process's token lives. It is renewed after a part of that; clients read the file again every
// minute.
const tokenSeconds = 3600

// renewAfter is the part of a token's life after which there is a new one, as the kubelet has it.
const renewAfter = 0.8

// account is the ServiceAccount that a process acts as: RBAC applies to it as to a pod.
type account struct {
	client          client.Client
	namespace, name string
	// longest is how long a token is used at most; 0 is for as long as it is good.
	longest time.Duration
}

// keep is how long a token that lives for so many seconds is used.
func (a account) keep(seconds int64) time.Duration {
	keep := time.Duration(float64(seconds) * renewAfter * float64(time.Second))
	if a.longest > 0 {
		keep = min(keep, a.longest)
	}
	return keep
}

// token asks the API server for one. An empty audience is the API server's own.
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
	next time.Time // when the token is due
}

func (c *credentials) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// refresh writes the files, unless those there are good for a while.
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
	// The names are those of the folder that a pod has.
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
