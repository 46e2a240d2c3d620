package aws

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// short returns AWS's message without the URL and the id of the request, and cuts it to cloud.MaxSaid.
func short(err error) error {
	err = said(err)
	if text := err.Error(); len(text) > cloud.MaxSaid {
		return errors.New(plain.Clip(text, cloud.MaxSaid))
	}
	return err
}

func said(err error) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		// After a wrong signature AWS repeats the signed headers, and the token of a session is one of them.
		message, _, _ := strings.Cut(api.ErrorMessage(), "\n\n")
		return fmt.Errorf("%s: %s", api.ErrorCode(), message)
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return sent
	}
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		return op.Err
	}
	return err
}

func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// isDenied tells whether the credentials lack the permission for the request.
func isDenied(err error) bool {
	return slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}, code(err))
}

// isGone tells whether the resource does not exist.
func isGone(err error) bool {
	c := code(err)
	return strings.HasSuffix(c, "NotFound") || c == "ResourceNotFoundException"
}

// isInUse tells whether another resource must be deleted first, or was deleted only a moment ago.
func isInUse(err error) bool {
	return slices.Contains([]string{
		"DependencyViolation", "ResourceInUse", "ResourceInUseException", "VolumeInUse", "InvalidIPAddress.InUse",
		"InvalidNetworkInterface.InUse",
	}, code(err))
}

// refusal is an error inside of a successful answer of AWS.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.code + ": " + r.message }

// ErrorCode implements smithy.APIError.
func (r *refusal) ErrorCode() string { return r.code }

// ErrorMessage implements smithy.APIError.
func (r *refusal) ErrorMessage() string { return r.message }

// ErrorFault implements smithy.APIError. AWS does not tell whose fault it is.
func (r *refusal) ErrorFault() smithy.ErrorFault { return smithy.FaultUnknown }
