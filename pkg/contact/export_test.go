package contact

import (
	"net/http"
	"time"
)

// Hasty is Transport with another limit of an attempt and without a pause.
func Hasty(next http.RoundTripper, limit time.Duration) http.RoundTripper {
	return &transport{next: next, limit: limit, silence: Silence}
}

// Restless is Transport with another limit of silence after the contact.
func Restless(next http.RoundTripper, silence time.Duration) http.RoundTripper {
	return &transport{next: next, limit: Limit, pause: pause, silence: silence}
}

// Impatient returns Servers with another limit of a request.
func Impatient(limit time.Duration) *Servers {
	s := NewServers(&http.Transport{})
	s.limit = limit
	return s
}
