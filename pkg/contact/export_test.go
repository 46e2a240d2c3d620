package contact

import (
	"net/http"
	"time"
)

// Hasty is Transport with another limit, and without a pause.
func Hasty(next http.RoundTripper, limit time.Duration) http.RoundTripper {
	return &transport{next: next, limit: limit}
}
