package credentials

import (
	"encoding/base64"
	"testing"
	"time"
)

func TestEndOf(t *testing.T) {
	end := time.Date(2026, 11, 24, 3, 4, 5, 0, time.UTC)
	token := "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1795489445}`)) + ".c2ln"
	process := `{"Version":1,"AccessKeyId":"a","SecretAccessKey":"b","Expiration":"2026-11-24T04:04:05+01:00"}`
	for name, value := range map[string]string{
		"web token": token, "web token in a file": token + "\n", "credential_process": process,
		"ExecCredential":   `{"kind":"ExecCredential","status":{"token":"x","expirationTimestamp":"2026-11-24T03:04:05Z"}}`,
		"Kubernetes token": `{"expirationTimestamp":"2026-11-24T03:04:05Z"}`, "in base64": base64.StdEncoding.EncodeToString([]byte(process)),
	} {
		if got, ok := EndOf(value); !ok || !got.Equal(end) {
			t.Errorf("%s ends at %s, %v", name, got, ok)
		}
	}
	for _, value := range []string{
		"", "secret", "a.b.c", "eyJ.eyJ.x", `{"Expiration":5}`, `{"Expiration":""}`, "{}", "c2VjcmV0",
		"eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1e300}`)) + ".c2ln",
		"eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"x"}`)) + ".c2ln",
	} {
		if got, ok := EndOf(value); ok {
			t.Errorf("%q ends at %s", value, got)
		}
	}
}
