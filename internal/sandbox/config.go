package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
)

// Config is an override file for the daemon (spec 11 §3.6): it points every
// outside address of the environment at the market.
type Config struct {
	HostrRelay             string    `json:"hostrRelay"`
	BootstrapRelays        []string  `json:"bootstrapRelays"`
	BootstrapBlossom       []string  `json:"bootstrapBlossom"`
	BootstrapEscrowPubkeys []string  `json:"bootstrapEscrowPubkeys"`
	GeocoderURL            string    `json:"geocoderUrl"`
	EVMConfig              EVMConfig `json:"evmConfig"`
}

// EVMConfig is empty: the market has no chains and no swaps yet.
type EVMConfig struct{}

// Config returns the override file's content for this market.
func (m *Market) Config() Config {
	return Config{
		HostrRelay:             m.RelayURL,
		BootstrapRelays:        []string{},
		BootstrapBlossom:       []string{m.BlossomURL},
		BootstrapEscrowPubkeys: []string{m.Escrow.PublicKey},
		GeocoderURL:            m.GeocoderURL,
	}
}

// WriteConfig writes the override file to path, for hostr-daemon --config.
func (m *Market) WriteConfig(path string) error {
	text, err := json.MarshalIndent(m.Config(), "", "  ")
	if err != nil {
		return fmt.Errorf("config of the market: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("config of the market: %w", err)
	}
	return nil
}
