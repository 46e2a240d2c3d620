package confine

import (
	"encoding/binary"
	"time"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// placesEvery is how often a process tells at which place of a thing its work is. What ends it may come within a second.
const placesEvery = 200 * time.Millisecond

// maxPlace is how long the name of a place may be, in bytes.
const maxPlace = 300

// place is where the work on one thing is.
type place struct {
	at   func() string
	told string
}

// place notes who knows where the work on a thing is; nil: it has ended.
func (w *watch) place(id uint64, at func() string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at == nil {
		delete(w.places, id)
		return
	}
	w.places[id] = &place{at: at}
}

// tellPlaces tells for all things, again and again, where the work on them is. Only this goroutine runs while a single call takes all time
// or all memory: what it told last is where the process ended.
func (w *watch) tellPlaces() {
	for range time.Tick(placesEvery) {
		for id, at := range w.moved() {
			if w.to.send(frameAt, appendText(binary.AppendUvarint(nil, id), at)) != nil {
				return
			}
		}
	}
}

// moved are the places that were not told yet.
func (w *watch) moved() map[uint64]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := map[uint64]string{}
	for id, p := range w.places {
		if at := plain.Clip(p.at(), maxPlace); at != p.told {
			p.told, fresh[id] = at, at
		}
	}
	return fresh
}
