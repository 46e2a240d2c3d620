package kube

import (
	"errors"

	"golang.org/x/sync/errgroup"
)

// Each calls do for every item, for at most limit items at a time. It tries all items, even if some fail. The error joins the errors in the
// order of the items.
func Each[T any](limit int, items []T, do func(item T) error) error {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(limit)
	for i, item := range items {
		group.Go(func() error {
			errs[i] = do(item)
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	return errors.Join(errs...)
}
