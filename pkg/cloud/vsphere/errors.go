package vsphere

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// short is what vCenter says, without the password and no longer than an error may be.
func (a *Account) short(err error) error {
	err = said(err)
	text := plain.Clip(sameorigin.Without(err.Error(), a.password), cloud.MaxSaid)
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// said is what vCenter says. The address in an error of the network has no password: that goes in the body of a request.
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

// hint says what helps, where it is known.
func (a *Account) hint(err error) string {
	switch {
	case soap.IsCertificateUntrusted(err):
		return "export " + ThumbprintVariable + "=… with the SHA-1 fingerprint of its certificate, once you know that it is the right one: " +
			a.fingerprintCommand() + "; clusters of the fleet repo that are in this vCenter give it, too"
	case isInvalid(err):
		return "renew the certificate of the vCenter, or set the clock of this machine: a fingerprint does not make up for it"
	case fault.Is(err, &types.InvalidLogin{}):
		return "check " + UserVariable + ", as user@domain, and " + PasswordVariable
	case fault.Is(err, &types.NoPermission{}):
		return "give the user the role Read-only on the vCenter, with all that is below it"
	case a.thumbprint != "" && strings.Contains(err.Error(), "thumbprint does not match"):
		return "find out whether its certificate was renewed: " + a.fingerprintCommand() + "; then give the new fingerprint in " +
			ThumbprintVariable + ", and in `thumbprint` to the clusters"
	}
	return ""
}

// fingerprintCommand prints the fingerprint of the vCenter's certificate.
func (a *Account) fingerprintCommand() string {
	return "`openssl s_client -connect " + net.JoinHostPort(a.url.Hostname(), cmp.Or(a.url.Port(), "443")) +
		" </dev/null | openssl x509 -noout -fingerprint -sha1`"
}

// isInvalid tells that a certificate is not valid whoever signed it: it has expired, or is none for servers.
func isInvalid(err error) bool {
	_, is := errors.AsType[x509.CertificateInvalidError](err)
	return is
}

// isGone tells that what was asked for does not exist any more.
func isGone(err error) bool {
	return fault.Is(err, &types.ManagedObjectNotFound{}) || rest.IsStatusError(err, http.StatusNotFound)
}

// isAbsent tells that the vCenter does not have an API at all.
func isAbsent(err error) bool { return rest.IsStatusError(err, http.StatusNotFound) }
