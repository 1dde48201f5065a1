package sessions

import (
	"slices"
	"sync"

	"hostr-daemon/internal/relay"
)

// signInsPerLine is how many sign-ins share a connection. Relays take about twenty
// subscriptions on one.
const signInsPerLine = 16

// lines are the relay connections of the sign-ins under way. They belong to nobody, so
// that sign-ins can share them. The zero value has none.
type lines struct {
	mu   sync.Mutex
	open []*line
}

// line is one set of connections.
type line struct {
	services *Services
	users    int
}

// take returns a relay client with room, opening one where there is none. hangUp, which
// must be called once, closes it behind the last user.
func (l *lines) take(config *Config) (client *relay.Client, hangUp func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.open, func(open *line) bool { return open.users < signInsPerLine })
	if at < 0 {
		services, err := config.services(nil)
		if err != nil {
			return nil, nil, err
		}
		at, l.open = len(l.open), append(l.open, &line{services: services})
	}
	taken := l.open[at]
	taken.users++
	return taken.services.relays, func() { l.leave(taken) }, nil
}

func (l *lines) leave(left *line) {
	l.mu.Lock()
	left.users--
	last := left.users == 0
	if last {
		l.open = slices.DeleteFunc(l.open, func(open *line) bool { return open == left })
	}
	l.mu.Unlock()
	if last {
		left.services.close()
	}
}
