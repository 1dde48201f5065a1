package store

import (
	"bytes"
	"fmt"
	"testing"
)

func keepAnswers(t testing.TB, answers *GeocoderAnswers, from, to, size int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := answers.Keep(t.Context(), key(i), bytes.Repeat([]byte{byte(i)}, size)); err != nil {
			t.Fatal(err)
		}
	}
}

func recall(t testing.TB, answers *GeocoderAnswers, i int) string {
	t.Helper()
	answer, err := answers.Recall(t.Context(), key(i))
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestGeocoderAnswersAreRecalled(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := openStore(t, path)
	if got := recall(t, s.GeocoderAnswers(), 1); got != "" {
		t.Errorf("before anything was kept: %q", got)
	}
	for _, answer := range []string{"first", "second"} {
		if err := s.GeocoderAnswers().Keep(t.Context(), key(1), []byte(answer)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path)
	if got := recall(t, s.GeocoderAnswers(), 1); got != "second" {
		t.Errorf("after a restart: %q", got)
	}
	if got := recall(t, s.GeocoderAnswers(), 2); got != "" {
		t.Errorf("under another key: %q", got)
	}
}

func TestGeocoderAnswersGrowOld(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	answers := s.GeocoderAnswers()
	keepAnswers(t, answers, 0, 4, 1)
	const day = 24 * 3600
	for i, kept := range []string{
		fmt.Sprintf("kept_at - %d", 29*day), fmt.Sprintf("kept_at - %d", 30*day),
		fmt.Sprintf("kept_at + %d", 31*day), "'yesterday'",
	} {
		if _, err := s.writer.ExecContext(t.Context(), "UPDATE hostrd_geocoder_answers SET kept_at = "+kept+" WHERE key = ?", func() []byte { k := key(i); return k[:] }()); err != nil {
			t.Fatal(err)
		}
	}
	for i, young := range []bool{true, false, false, false} {
		if got := recall(t, answers, i); (got != "") != young {
			t.Errorf("answer %d: %q", i, got)
		}
	}
	keepAnswers(t, answers, 9, 10, 1)
	if n := count(t, s.reader, "hostrd_geocoder_answers"); n != 2 {
		t.Errorf("%d rows, want the young one and the new one", n)
	}
}

func TestGeocoderAnswersStayBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	answers := s.GeocoderAnswers()
	answers.maxRows, answers.maxBytes = 5, 1000
	keepAnswers(t, answers, 0, 8, 10)
	if n := count(t, s.reader, "hostrd_geocoder_answers"); n != 5 || recall(t, answers, 2) != "" || recall(t, answers, 3) == "" {
		t.Errorf("%d rows, want the newest 5", n)
	}
	keepAnswers(t, answers, 20, 23, 400)
	if n := count(t, s.reader, "hostrd_geocoder_answers"); n != 2 || recall(t, answers, 20) != "" || recall(t, answers, 21) == "" {
		t.Errorf("%d rows, want the newest within 1000 bytes", n)
	}
	keepAnswers(t, answers, 30, 31, maxGeocoderAnswer+1)
	if n := count(t, s.reader, "hostrd_geocoder_answers"); n != 2 {
		t.Errorf("%d rows: an answer too large has changed them", n)
	}
}

func TestGeocoderAnswerOfAnotherTypeIsAMiss(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	answers := s.GeocoderAnswers()
	keepAnswers(t, answers, 0, 1, 10)
	execute(t, s.writer, "UPDATE hostrd_geocoder_answers SET answer = 17")
	if got := recall(t, answers, 0); got != "" {
		t.Errorf("got %q", got)
	}
	keepAnswers(t, answers, 0, 1, 10)
	if got := recall(t, answers, 0); len(got) != 10 {
		t.Errorf("kept anew: %q", got)
	}
}

func BenchmarkGeocoderAnswers(b *testing.B) {
	s := openStore(b, newPath(b))
	answers := s.GeocoderAnswers()
	keepAnswers(b, answers, 0, 500, 100<<10)
	for _, size := range []int{100, 100 << 10, 2 << 20} {
		keepAnswers(b, answers, 0, 1, size)
		b.Run(fmt.Sprintf("Recall%d", size), func(b *testing.B) {
			for b.Loop() {
				if len(recall(b, answers, 0)) != size {
					b.Fatal("not recalled")
				}
			}
		})
		b.Run(fmt.Sprintf("Keep%d", size), func(b *testing.B) {
			for b.Loop() {
				keepAnswers(b, answers, 0, 1, size)
			}
		})
	}
}
