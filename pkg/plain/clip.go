package plain

import "unicode/utf8"

// Clip is text, and where it has more bytes than most, its beginning with an ellipsis. It never cuts a character in two.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := text[:most]
	for len(cut) > 0 && !utf8.RuneStart(text[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	return cut + "…"
}
