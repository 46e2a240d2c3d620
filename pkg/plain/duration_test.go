package plain

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Minute: "0s", 1400 * time.Millisecond: "1s", 119 * time.Second: "1m59s", 150 * time.Second: "3m", 119 * time.Minute: "1h59m",
		2*time.Hour + 29*time.Minute: "2h", 100 * time.Hour: "100h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d ns: got %q, want %q", d, got, want)
		}
	}
}
