// Package geocode asks a geocoder that speaks the Nominatim search API where a
// place or an address is (spec 42 §1). It knows that API, its retries and its
// manners: one request a second, an identifying User-Agent, a bounded memory of
// places already looked up.
//
// It must never know what a search or a listing is, turn places into cells, or
// write to standard output.
package geocode
