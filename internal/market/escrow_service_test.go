package market_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func serviceEvent(content string) *nostr.Event {
	return &nostr.Event{Kind: market.KindEscrowService, PubKey: messageEscrow, Content: content}
}

func TestDecodeEscrowService(t *testing.T) {
	t.Parallel()
	service, err := market.DecodeEscrowService(serviceEvent(strings.Replace(readableService, `"params"`,
		`"fee":{"ppm":10000.9,"base":"3","min":20,"max":2e2,"assetOverrides":{"native":{"ppm":5},"0x1":7}},"params"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	fee := service.Fee
	if fee.PPM != 10000 || fee.Base.String() != "3" || fee.Min.String() != "20" || fee.Max.String() != "200" ||
		len(fee.Assets) != 1 || fee.Assets["native"].PPM != 5 || fee.Assets["native"].Base.Sign() != 0 {
		t.Errorf("fee %+v", fee)
	}
	if service.Pubkey != "p" || service.MaxDuration != 5 || service.ArbiterAddress != "0x1" ||
		service.ContractAddress != "0x2" || service.ContractBytecodeHash != "ab" || service.ChainID != 30 {
		t.Errorf("%+v", service)
	}
}

func TestDecodeEscrowServiceJudges(t *testing.T) {
	t.Parallel()
	withFee := func(fee string) string {
		return strings.Replace(readableService, `"params"`, `"fee":`+fee+`,"params"`, 1)
	}
	for content, readable := range map[string]bool{
		readableService: true,
		withFee(`null`): true, withFee(`[]`): true, withFee(`"x"`): true, withFee(`{}`): true,
		withFee(`{"assetOverrides":[]}`): true, withFee(`{"assetOverrides":{"a":null,"b":[]}}`): true,
		withFee(`{"base":"99999999999999999999999999"}`): true,
		withFee(`{"ppm":-1}`):                            false, withFee(`{"ppm":1e30}`): false, withFee(`{"ppm":true}`): false,
		withFee(`{"base":-1}`): false, withFee(`{"min":"-1"}`): false, withFee(`{"max":"1.5"}`): false,
		withFee(`{"max":""}`): false, withFee(`{"max":1e400}`): false, withFee(`{"max":{}}`): false,
		withFee(`{"base":"` + strings.Repeat("9", 5000) + `"}`):     false,
		withFee(`{"assetOverrides":{"a":{"ppm":-1}}}`):              false,
		strings.Replace(readableService, "EVM", "evm", 1):           false,
		strings.Replace(readableService, `"p"`, `5`, 1):             false,
		strings.Replace(readableService, `:5`, `:5.0`, 1):           false,
		strings.Replace(readableService, `"maxDuration":5,`, ``, 1): false,
		strings.Replace(readableService, `:30`, `:"30"`, 1):         false,
		strings.Replace(readableService, `"0x2"`, `null`, 1):        false,
		strings.Replace(readableService, `params`, `parameters`, 1): false,
		`[]`: false, ``: false, `null`: false,
	} {
		if _, err := market.DecodeEscrowService(serviceEvent(content)); (err == nil) != readable ||
			!readable && !errors.Is(err, market.ErrNotEscrowService) {
			t.Errorf("%.200s: %v", content, err)
		}
	}
	if _, err := market.DecodeEscrowService(nil); !errors.Is(err, market.ErrNotEscrowService) {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := market.DecodeEscrowSelection(serviceEvent("{}")); !errors.Is(err, market.ErrNotEscrowSelection) {
		t.Errorf("of another kind: %v", err)
	}
}

func TestDecodeEscrowSelection(t *testing.T) {
	t.Parallel()
	event := eventOf(t, []byte(childSelection("id", readableService)))
	selection, err := market.DecodeEscrowSelection(event)
	if err != nil {
		t.Fatal(err)
	}
	if selection.TradeID != messageTrade || selection.Listing != "30402:"+messageHost+":cabin" ||
		selection.EscrowService.Event.ID != "id" || selection.EscrowService.ChainID != 30 ||
		selection.SellerConfiguration.PubKey != messageHost || !strings.HasPrefix(selection.Service, `{"id":"id"`) ||
		!strings.HasPrefix(selection.SellerMethods, `{"id":""`) {
		t.Errorf("%+v", selection)
	}
}

func FuzzDecodeEscrowService(f *testing.F) {
	f.Add(readableService)
	f.Add(strings.Replace(readableService, `"params"`, `"fee":{"ppm":1e3,"base":"1","assetOverrides":{"a":{}}},"params"`, 1))
	f.Fuzz(func(t *testing.T, content string) {
		service, err := market.DecodeEscrowService(serviceEvent(content))
		if err != nil {
			return
		}
		if fee := service.Fee; fee.PPM < 0 || fee.Base.Sign() < 0 || fee.Min.Sign() < 0 || fee.Max.Sign() < 0 {
			t.Fatalf("%+v", fee)
		}
	})
}
