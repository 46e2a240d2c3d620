package plain

import (
	"strings"
	"time"
)

// Duration is a duration as people say it, no finer than matters. A negative duration counts as zero.
func Duration(d time.Duration) string {
	d = max(0, d).Round(time.Second)
	switch {
	case d < 2*time.Minute:
		return d.String()
	case d < 2*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return strings.TrimSuffix(d.Round(time.Hour).String(), "0m0s")
}

// Ago is a time in the past as people say it.
func Ago(t time.Time) string { return Duration(time.Since(t)) + " ago" }
