package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress tells on a terminal that something is still going on: from the first
// second on, one line with the seconds it has taken. stop takes the line away and
// returns when nothing more will be written; it may be called more than once.
func Progress(out io.Writer, what string) (stop func()) {
	ticker := time.NewTicker(time.Second)
	end := progress(out, what, ticker.C)
	return func() {
		ticker.Stop()
		end()
	}
}

// progress counts the ticks as seconds.
func progress(out io.Writer, what string, ticks <-chan time.Time) (stop func()) {
	ended := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		shown := ""
		for second := 1; ; second++ {
			select {
			case <-ticks:
				shown = fmt.Sprintf("%s … %d s", oneLine(what), second)
				fmt.Fprintf(out, "\r%s", shown)
			case <-ended:
				if shown != "" {
					fmt.Fprintf(out, "\r%s\r", strings.Repeat(" ", columns(shown)))
				}
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		writer.Wait()
	})
}
