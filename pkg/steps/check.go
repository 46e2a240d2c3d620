package steps

import (
	"fmt"
	"slices"
)

// Check returns an error for a workflow whose steps cannot all run. For example, a step needs a step that does not come before it, or
// takes a value from a step that it does not need.
func Check(steps []Step) error {
	c := checker{makers: map[slot]string{}, before: map[string]map[string]bool{}}
	for _, s := range steps {
		if err := c.add(s); err != nil {
			return err
		}
	}
	for _, s := range steps {
		if err := c.values(s); err != nil {
			return err
		}
	}
	return c.standstill(steps)
}

type checker struct {
	// makers are the steps that make the values.
	makers map[slot]string
	// before are the steps that a step needs, directly or through other steps.
	before map[string]map[string]bool
}

func (c *checker) add(s Step) error {
	if c.before[s.Name] != nil {
		return fmt.Errorf("two steps are called %q", s.Name)
	}
	before := map[string]bool{}
	for _, need := range s.Needs {
		if c.before[need] == nil {
			return fmt.Errorf("step %q needs %q, which does not come before it", s.Name, need)
		}
		before[need] = true
		for further := range c.before[need] {
			before[further] = true
		}
	}
	c.before[s.Name] = before
	if s.Work.is() == (s.Run != nil) {
		return fmt.Errorf("step %q has to have either Run or Work", s.Name)
	}
	for _, v := range s.Work.makes {
		switch {
		case c.makers[v] != "":
			return fmt.Errorf("the steps %q and %q both make %s", c.makers[v], s.Name, v.title())
		case s.Done != nil:
			return fmt.Errorf("step %q makes %s, and so must not have a Done, which would end it without the value", s.Name, v.title())
		}
		c.makers[v] = s.Name
	}
	return nil
}

// values refuses a step that takes a value which it cannot get. A value that was told before the workflow begins is available to every
// step.
func (c *checker) values(s Step) error {
	for _, v := range slices.Concat(s.Work.takes, s.Work.awaits) {
		if c.makers[v] == "" && !v.isMade() {
			return fmt.Errorf("step %q takes %s, which no step makes", s.Name, v.title())
		}
	}
	for _, v := range s.Work.takes {
		if maker := c.makers[v]; maker != "" && !c.before[s.Name][maker] {
			return fmt.Errorf("step %q takes %s, but does not need the step %q, which makes it", s.Name, v.title(), maker)
		}
	}
	return nil
}

// standstill refuses steps that would wait for each other, because of their needs, or of values that they await during their work.
func (c *checker) standstill(steps []Step) error {
	waits := map[string][]string{}
	for _, s := range steps {
		waits[s.Name] = slices.Clone(s.Needs)
		for _, v := range s.Work.awaits {
			if maker := c.makers[v]; maker != "" {
				waits[s.Name] = append(waits[s.Name], maker)
			}
		}
	}
	ended := map[string]bool{}
	for len(ended) < len(steps) {
		before := len(ended)
		for _, s := range steps {
			if !ended[s.Name] && !slices.ContainsFunc(waits[s.Name], func(other string) bool { return !ended[other] }) {
				ended[s.Name] = true
			}
		}
		if len(ended) == before {
			i := slices.IndexFunc(steps, func(s Step) bool { return !ended[s.Name] })
			return fmt.Errorf("step %q would never end: it waits for steps that wait for it", steps[i].Name)
		}
	}
	return nil
}
