package forge

import (
	"context"
	"fmt"
	"net/http"
)

// EnsureRepository makes the repository, private and empty, if it does not exist. made tells whether this call has made it. The token needs
// the right to make repositories for the repository's owner: a user, an organization or a group. Errors name the forge and the reason of
// its refusal.
func EnsureRepository(ctx context.Context, o Options) (made bool, err error) {
	c, err := newClient(o, makeRepository)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	there, err := c.exists(ctx)
	if err != nil {
		return false, explainMaking("look for the repository", o, err)
	}
	if there {
		return false, nil
	}
	if err := c.make(ctx); err != nil {
		if there, again := c.exists(ctx); again == nil && there { // another run has made it meanwhile
			return false, nil
		}
		return false, explainMaking("make the repository", o, err)
	}
	return true, nil
}

func explainMaking(op string, o Options, err error) error {
	return explain(fmt.Sprintf("%s %s", op, o.Remote.Redacted()), err, o.Token, map[int]string{
		http.StatusUnauthorized:        "the forge does not accept the token",
		http.StatusForbidden:           "the token needs the right to make repositories for this owner; or make the repository by hand, empty",
		http.StatusNotFound:            "check the owner in the URL, and that the token may make repositories for this owner",
		http.StatusConflict:            nameTaken,
		http.StatusUnprocessableEntity: nameTaken,
	})
}

// nameTaken is the hint for a forge that refuses the name, although the token sees no such repository.
const nameTaken = "a repository of this name may exist that the token cannot see: give the token access to it, or choose another name"

// isThere interprets the answer to a request for the repository.
func isThere(status int, err error) (bool, error) {
	if status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, withStatus(status, err)
}
