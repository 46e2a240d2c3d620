package plain

import "testing"

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aé", 2, "a…"},
		{"aéb", 3, "aé…"},
		{"", 0, ""},
		{"é", 1, "…"},
		{"a\xff\xff\xffb", 3, "a\xff\xff…"},
	} {
		if got := Clip(tt.text, tt.most); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}
