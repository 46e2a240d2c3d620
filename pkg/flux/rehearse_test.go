package flux

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What was decrypted is quoted by no error.
func TestUnquoted(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{
		field.Invalid(field.NewPath("data").Key("key"), "hunter2", "it is no key"),
	})
	got := unquoted(invalid).Error()
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "data[key] FieldValueInvalid") {
		t.Errorf("got %q", got)
	}
	if got := unquoted(apierrors.NewBadRequest("cannot read hunter2")).Error(); strings.Contains(got, "hunter2") {
		t.Errorf("got %q", got)
	}
	cut := errors.New("connection refused")
	if got := unquoted(cut); !errors.Is(got, cut) {
		t.Errorf("got %v", got)
	}
}
