package aws

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// unknown is the code of the SDK for an answer without one.
const unknown = "UnknownError"

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
		if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && api.ErrorCode() == unknown {
			return fmt.Errorf("the answer is %d %s, and not one of AWS", answer.HTTPStatusCode(), http.StatusText(answer.HTTPStatusCode()))
		}
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

// isThrottled tells whether AWS is asked too often.
func isThrottled(err error) bool {
	_, is := retry.DefaultThrottleErrorCodes[code(err)]
	return is || code(err) == "Client.RequestLimitExceeded"
}

// hint returns what to do about an error, or "".
func hint(err error) string {
	switch c := code(err); {
	case isDenied(err):
		return "allow this action to the user of the credentials, as the provider's own policy does"
	case isThrottled(err):
		return "run the same command again in a minute: AWS counts the requests of all programs of the account; --region asks fewer regions"
	case slices.Contains([]string{"ExpiredToken", "ExpiredTokenException", "RequestExpired"}, c):
		return "renew the credentials; if they are new, set the clock of this machine"
	case c == "AuthFailure", c == "OptInRequired", c == "InvalidClientTokenId", c == "UnrecognizedClientException":
		return "check the credentials with `aws sts get-caller-identity`, and that the region is enabled for the account: " +
			"`aws account list-regions`"
	case c == "SignatureDoesNotMatch", c == "RequestTimeTooSkewed":
		return "check the secret key, and the clock of this machine"
	}
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.HTTPStatusCode() >= http.StatusInternalServerError {
		return "run the same command again in a minute; https://health.aws.amazon.com tells of outages"
	}
	return ""
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
