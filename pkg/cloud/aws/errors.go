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

// short is what AWS says, without the address and the id of the request, and no longer than an error may be.
func short(err error) error {
	err = said(err)
	if text := err.Error(); len(text) > cloud.MaxSaid {
		return errors.New(plain.Clip(text, cloud.MaxSaid))
	}
	return err
}

func said(err error) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return fmt.Errorf("%s: %s", api.ErrorCode(), api.ErrorMessage())
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

// isDenied tells that the credentials may not ask that.
func isDenied(err error) bool {
	return slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}, code(err))
}

// isGone tells that what was asked for does not exist.
func isGone(err error) bool {
	c := code(err)
	return strings.HasSuffix(c, "NotFound") || c == "ResourceNotFoundException"
}

// isInUse tells that something else has to go first, or to have gone for longer.
func isInUse(err error) bool {
	return slices.Contains([]string{
		"DependencyViolation", "ResourceInUse", "ResourceInUseException", "VolumeInUse", "InvalidIPAddress.InUse",
		"InvalidNetworkInterface.InUse",
	}, code(err))
}

// refusal is an error that AWS puts into an answer that is none.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.code + ": " + r.message }

// ErrorCode is AWS's.
func (r *refusal) ErrorCode() string { return r.code }

// ErrorMessage is AWS's.
func (r *refusal) ErrorMessage() string { return r.message }

// ErrorFault is nobody's.
func (r *refusal) ErrorFault() smithy.ErrorFault { return smithy.FaultUnknown }
