package plain

import "unicode/utf8"

// Clip returns text. If text has more than most bytes, Clip returns its beginning with an ellipsis. It never cuts a character in two.
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
