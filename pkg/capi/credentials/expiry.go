package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// EndOf returns the time at which a value expires, and false if the value does not tell. It reads the exp of a JSON web token, and the
// Expiration in the output of a credential command of AWS (credential_process) or Kubernetes (ExecCredential), also in base64.
func EndOf(value string) (time.Time, bool) {
	if end, ok := endOfText([]byte(value)); ok {
		return end, true
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return time.Time{}, false
	}
	return endOfText(decoded)
}

func endOfText(text []byte) (time.Time, bool) {
	var said struct {
		Expiration          time.Time `json:"Expiration"` //nolint:tagliatelle // AWS's name
		ExpirationTimestamp time.Time `json:"expirationTimestamp"`
		Status              struct {
			ExpirationTimestamp time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	if json.Unmarshal(text, &said) == nil {
		for _, end := range []time.Time{said.Expiration, said.ExpirationTimestamp, said.Status.ExpirationTimestamp} {
			if !end.IsZero() {
				return end.UTC(), true
			}
		}
	}
	end, err := endOfToken(string(text))
	return end, err == nil
}

var errNoToken = errors.New("no token with an expiry")

func endOfToken(text string) (time.Time, error) {
	parts := splitToken(text)
	if parts == nil {
		return time.Time{}, errNoToken
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, err
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return time.Time{}, err
	}
	if claims.Exp <= 0 || claims.Exp > 1<<40 {
		return time.Time{}, errNoToken
	}
	return time.Unix(int64(claims.Exp), 0).UTC(), nil
}

// splitToken returns the three parts of a JSON web token, or nil.
func splitToken(text string) []string {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "eyJ") {
		return nil
	}
	return parts
}
