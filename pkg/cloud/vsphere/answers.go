package vsphere

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
)

// answers checks what a vCenter answers in one session before govmomi reads it. govmomi panics on an answer of another kind than it has
// asked for, and it asks for the next page of a list for as long as the vCenter names one.
type answers struct {
	soap.RoundTripper
	left int // pages
}

// RoundTrip implements soap.RoundTripper. It fails if the answer is of another kind, and after mostPages pages.
func (a *answers) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	if _, next := req.(*methods.ContinueRetrievePropertiesExBody); next {
		if a.left--; a.left < 0 {
			return fmt.Errorf("its lists do not end after %d pages", mostPages)
		}
	}
	if err := a.RoundTripper.RoundTrip(ctx, req, res); err != nil {
		return err
	}
	// Each kind of answer is a type of its own, which has its content in Res.
	body := reflect.Indirect(reflect.ValueOf(res))
	if content := body.FieldByName("Res"); content.Kind() == reflect.Pointer && content.IsNil() {
		return errors.New("its answer does not belong to the request: is this the address of a vCenter?")
	}
	return nil
}
