package refused

import "fmt"

// taintsOnce reports two taints with the same key and effect. No kubelet starts with them.
func (p part) taintsOnce(field string) {
	seen := map[[2]string]bool{}
	for _, taint := range p.each(field) {
		key, ok := taint.known("key")
		is := [2]string{key, taint.word("effect")}
		if ok && seen[is] {
			taint.refuse("key", fmt.Sprintf("another taint has the key %.80s and this effect, too", key), "remove one of the two")
		}
		seen[is] = true
	}
}
