// Package trace carries a caller's trace id through contexts, so that an outside
// system that takes one (the geocoder, Blossom) can be given it.
package trace

import "context"

type key struct{}

// With returns a context that carries the trace id; an empty id changes nothing.
func With(ctx context.Context, id string) context.Context {
	if id == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, id)
}

// ID returns the trace id the context carries, or "".
func ID(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}
