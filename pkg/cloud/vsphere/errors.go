package vsphere

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// short returns vCenter's message without the password, and cuts it to cloud.MaxSaid.
func (a *Account) short(err error) error {
	err = said(err)
	text := plain.Clip(sameorigin.Without(err.Error(), a.password), cloud.MaxSaid)
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// said returns vCenter's message. The URL in a network error has no password, because the password is in the body of a request.
func said(err error) error {
	var privilege *types.NoPermission
	if _, is := fault.As(err, &privilege); is {
		return fmt.Errorf("the privilege %s is missing", privilege.PrivilegeId)
	}
	if soap.IsSoapFault(err) {
		return errors.New(soap.ToSoapFault(err).String)
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return sent
	}
	return err
}

// hint returns what to do about an error, or "".
func (a *Account) hint(err error) string {
	switch {
	case soap.IsCertificateUntrusted(err):
		return "export " + ThumbprintVariable + "=… with the SHA-1 fingerprint of its certificate, after you have checked that it is right: " +
			a.fingerprintCommand() + "; or set `thumbprint` of the fleet's clusters in this vCenter"
	case isInvalid(err):
		return "renew the certificate of the vCenter, or set the clock of this machine: a fingerprint does not help here"
	case fault.Is(err, &types.InvalidLogin{}):
		return "check " + UserVariable + ", as user@domain, and " + PasswordVariable
	case fault.Is(err, &types.NoPermission{}):
		return "give the user the role Read-only on the vCenter, with all that is below it"
	case a.thumbprint != "" && strings.Contains(err.Error(), "thumbprint does not match"):
		return "find out whether somebody has renewed its certificate: " + a.fingerprintCommand() + "; then set the new fingerprint in " +
			ThumbprintVariable + ", and as `thumbprint` of the clusters"
	case fault.Is(err, &types.NotAuthenticated{}), rest.IsStatusError(err, http.StatusUnauthorized):
		return "run the same command again: the vCenter has ended the session"
	}
	return a.hintOfConnection(err)
}

// hintOfConnection returns what to do about an answer that no vCenter gave, or that did not come, or "".
func (a *Account) hintOfConnection(err error) string {
	if isDown(err) {
		return "run the same command again in some minutes; https://" + net.JoinHostPort(a.url.Hostname(), "5480") +
			" shows whether the services of the vCenter run"
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "check that " + ServerVariable + " is right, and that this machine reaches it: VPN, HTTPS_PROXY, NO_PROXY"
	}
	return ""
}

// isDown tells whether the vCenter, or what is before it, answers that the API does not run. govmomi keeps the status in the text.
func isDown(err error) bool {
	text := err.Error()
	if sent, ok := errors.AsType[*url.Error](err); ok {
		text = sent.Err.Error()
	}
	return slices.ContainsFunc([]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, func(code int) bool {
		return rest.IsStatusError(err, code) || text == strconv.Itoa(code)+" "+http.StatusText(code)
	})
}

// fingerprintCommand returns a command that prints the fingerprint of the vCenter's certificate.
func (a *Account) fingerprintCommand() string {
	return "`openssl s_client -connect " + net.JoinHostPort(a.url.Hostname(), cmp.Or(a.url.Port(), "443")) +
		" </dev/null | openssl x509 -noout -fingerprint -sha1`"
}

// isInvalid tells whether a certificate is invalid regardless of its issuer: it has expired, or is not for servers.
func isInvalid(err error) bool {
	_, is := errors.AsType[x509.CertificateInvalidError](err)
	return is
}

// isGone tells whether the resource no longer exists.
func isGone(err error) bool {
	return fault.Is(err, &types.ManagedObjectNotFound{}) || rest.IsStatusError(err, http.StatusNotFound)
}

// isAbsent tells whether the vCenter lacks an API.
func isAbsent(err error) bool { return rest.IsStatusError(err, http.StatusNotFound) }
