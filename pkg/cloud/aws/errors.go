package aws

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
)

// short is what AWS says, without the address and the id of the request.
func short(err error) error {
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

// isGone tells that there is no such thing any more: each service has a code of its own for that, and one word is in all of them.
func isGone(err error) bool {
	return strings.Contains(code(err), "NotFound")
}

// isBusy tells that something else has to go first, or is on its way.
func isBusy(err error) bool {
	return slices.Contains([]string{
		"DependencyViolation", "ResourceInUse", "ResourceInUseException", "InvalidIPAddress.InUse", "VolumeInUse", "InvalidNetworkInterface.InUse",
		"InvalidParameterValue.InUse", "IncorrectState", "OperationNotPermitted",
	}, code(err))
}

// isDenied tells that the credentials may not ask that.
func isDenied(err error) bool {
	return slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}, code(err))
}
