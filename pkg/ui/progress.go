package ui

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// heartbeat is the interval at which a plain log tells that a step is still running, so that a reader can tell work from a hang.
const heartbeat = 15 * time.Second

// Reporter shows steps on standard error: plain lines, or a live block on a smart terminal. It remembers every finished step
// for a machine-readable result.
type Reporter struct {
	mu    sync.Mutex
	w     io.Writer
	color bool
	live  bool
	quiet bool
	// verbose prints when a step began. On a plain log, it also prints what the step waits for, after each change.
	verbose bool
	start   time.Time
	active  []*step
	drawn   int
	events  []progress.Event
	stop    chan struct{}
	ended   sync.WaitGroup
}

// NewReporter starts a Reporter on the streams; quiet keeps it from writing anything but warnings. Close ends it.
func NewReporter(s Streams, quiet bool) *Reporter {
	r := &Reporter{w: guarded(s.Err), color: s.ErrColor, live: s.ErrSmart, quiet: quiet, start: time.Now(), stop: make(chan struct{})}
	r.ended.Go(r.tick)
	return r
}

// Verbose lets the Reporter tell more of each step, and returns it. It is for right after NewReporter.
func (r *Reporter) Verbose(verbose bool) *Reporter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verbose = verbose
	return r
}

// Close erases the live block and ends the animation.
func (r *Reporter) Close() {
	select {
	case <-r.stop:
		return
	default:
		close(r.stop)
	}
	r.ended.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.erase()
}

// Events are the finished steps so far, in the order in which they ended.
func (r *Reporter) Events() []progress.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]progress.Event{}, r.events...)
}

// Start implements progress.Reporter.
func (r *Reporter) Start(name string) progress.Step {
	s := &step{reporter: r, name: name, start: time.Now(), told: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active = append(r.active, s)
	if !r.live {
		r.line(paint(r.color, plain.Dim, "…"), name, "")
	}
	r.redraw()
	return s
}

// Warn implements progress.Reporter.
func (r *Reporter) Warn(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.erase()
	fmt.Fprintf(r.w, "%s %s\n", paint(r.color, plain.Yellow, "warning:"), plain.Indented(Advise(r.w, message)))
	r.redraw()
}

func (r *Reporter) tick() {
	interval := time.Second
	if r.live {
		interval = 120 * time.Millisecond
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-t.C:
			r.mu.Lock()
			if r.live {
				r.redraw()
			} else {
				r.beat()
			}
			r.mu.Unlock()
		}
	}
}

// beat tells, on a plain log, of the steps that have been silent for a while.
func (r *Reporter) beat() {
	for _, s := range r.active {
		if time.Since(s.told) >= heartbeat {
			s.told = time.Now()
			r.line(paint(r.color, plain.Dim, "…"), s.name, fmt.Sprintf("still running, %s%s", seconds(time.Since(s.start)), behind(s.detail)))
		}
	}
}

func behind(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}

// line writes one plain line; the caller holds the lock.
func (r *Reporter) line(mark, name, text string) {
	if r.quiet {
		return
	}
	if text != "" {
		text = "  " + paint(r.color, plain.Dim, text)
	}
	_, _ = Fprintf(r.w, "%s %s%s\n", mark, name, text)
}

// erase removes the live block; the caller holds the lock.
func (r *Reporter) erase() {
	if r.drawn > 0 {
		fmt.Fprint(r.w, strings.Repeat(plain.Up.String(), r.drawn)+plain.Erase.String())
		r.drawn = 0
	}
}

var frames = [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// redraw shows the running steps on a smart terminal; the caller holds the lock.
func (r *Reporter) redraw() {
	if !r.live || r.quiet {
		return
	}
	r.erase()
	frame := frames[int(time.Since(r.start)/(120*time.Millisecond))%len(frames)]
	for _, s := range r.active {
		text := seconds(time.Since(s.start)) + behind(s.detail)
		_, _ = Fprintf(r.w, "%s %s  %s%s\n", frame, s.name, paint(r.color, plain.Dim, clip(plain.Line(text), 90)), plain.EraseTo)
		r.drawn++
	}
}

func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

type step struct {
	reporter *Reporter
	name     string
	start    time.Time
	told     time.Time
	detail   string
	ended    bool
}

func (s *step) Detail(text string) {
	s.reporter.mu.Lock()
	defer s.reporter.mu.Unlock()
	if r := s.reporter; r.verbose && !r.live && !s.ended && text != "" && text != s.detail {
		s.told = time.Now()
		r.line(paint(r.color, plain.Dim, "…"), s.name, seconds(time.Since(s.start))+behind(text))
	}
	s.detail = text
}

func (s *step) Done()           { s.end("done", "", "✓", plain.Green) }
func (s *step) Skip(why string) { s.end("skipped", why, "✓", plain.Green) }
func (s *step) Stop()           { s.end("stopped", "", "-", plain.Dim) }
func (s *step) Fail(err error)  { s.end("failed", err.Error(), "✗", plain.Red) }

func (s *step) end(outcome, detail, mark string, color plain.Control) {
	r := s.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	for i, other := range r.active {
		if other == s {
			r.active = append(r.active[:i:i], r.active[i+1:]...)
			break
		}
	}
	took := time.Since(s.start)
	r.events = append(r.events, progress.Event{
		Step: s.name, Took: took, Seconds: math.Round(took.Seconds()*1000) / 1000, Outcome: outcome, Detail: detail,
	})
	text := seconds(took)
	if outcome == "skipped" {
		text += ", " + detail
	}
	if r.verbose {
		text += ", began at " + seconds(s.start.Sub(r.start))
	}
	r.erase()
	r.line(paint(r.color, color, mark), s.name, text)
	r.redraw()
}

// seconds shows a duration as a person reads it: tenths below a minute, minutes and seconds above.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}
