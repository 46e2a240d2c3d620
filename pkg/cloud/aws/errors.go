package aws

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

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

// isDenied tells that the credentials may not ask that.
func isDenied(err error) bool {
	return slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}, code(err))
}
