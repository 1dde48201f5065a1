package market

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// EscrowService is an escrow's offer, read from an event of kind 30303 (spec 70 §3).
type EscrowService struct {
	// Event is the event as found; it must not be changed. Its id and signature are
	// not checked here.
	Event *nostr.Event
	// Pubkey is the operator that the content names; it need not be the author.
	Pubkey string
	// MaxDuration is in seconds and binds nobody.
	MaxDuration int64
	Fee         EscrowFee
	// ArbiterAddress and ContractAddress are EVM addresses, ContractBytecodeHash 64
	// hex digits, all as they stand.
	ArbiterAddress, ContractAddress, ContractBytecodeHash string
	ChainID                                               int64
}

// EscrowFee is what an escrow takes of a payment (spec 70 §3.1): PPM millionths and
// Base, at least Min and, unless that is 0, at most Max, in the token's smallest unit.
type EscrowFee struct {
	PPM            int64
	Base, Min, Max *big.Int
	// Assets are the policies of single assets by `native` or the exact text of a
	// token's address. They have no assets of their own.
	Assets map[string]EscrowFee
}

// ErrNotEscrowService is in the error of an event that offers no escrow that can be
// read.
var ErrNotEscrowService = errors.New("the event is not an escrow service")

// DecodeEscrowService reads an escrow's offer. One value that cannot be read makes the
// whole event an ErrNotEscrowService.
func DecodeEscrowService(event *nostr.Event) (EscrowService, error) {
	if event == nil || event.Kind != KindEscrowService {
		return EscrowService{}, ErrNotEscrowService
	}
	fields, err := readFields(event.Content)
	if err != nil {
		return EscrowService{}, fmt.Errorf("%w: %w", ErrNotEscrowService, err)
	}
	service := EscrowService{
		Event:       event,
		Pubkey:      fields.text("pubkey"),
		MaxDuration: fields.integer("maxDuration"),
		Fee:         fields.escrowFee("fee"),
	}
	if fields.text("type") != "EVM" {
		fields.fail("type", "is not EVM")
	}
	params := fields.object("params")
	if params == nil {
		fields.fail("params", "are missing")
		return EscrowService{}, fmt.Errorf("%w: %w", ErrNotEscrowService, fields.problem)
	}
	service.ArbiterAddress = params.text("arbiterAddress")
	service.ContractAddress = params.text("contractAddress")
	service.ContractBytecodeHash = params.text("contractBytecodeHash")
	service.ChainID = params.integer("chainId")
	if err := errors.Join(fields.problem, params.problem); err != nil {
		return EscrowService{}, fmt.Errorf("%w: %w", ErrNotEscrowService, err)
	}
	return service, nil
}

// escrowFee reads a policy; what is no object is a policy without fee.
func (r *fieldReader) escrowFee(key string) EscrowFee {
	fields, err := readFields(string(r.raw[key]))
	if err != nil {
		return EscrowFee{Base: new(big.Int), Min: new(big.Int), Max: new(big.Int)}
	}
	fee := fields.feePolicy()
	if assets, err := readFields(string(fields.raw["assetOverrides"])); err == nil {
		fee.Assets = fields.assetFees(assets)
	}
	if fields.problem != nil {
		r.fail(key, fields.problem.Error())
	}
	return fee
}

// assetFees reads the policies of single assets, skips those that are no objects and
// leaves a policy's own problem to r.
func (r *fieldReader) assetFees(assets *fieldReader) map[string]EscrowFee {
	fees := make(map[string]EscrowFee, len(assets.raw))
	for asset, raw := range assets.raw {
		fields, err := readFields(string(raw))
		if err != nil {
			continue
		}
		fees[asset] = fields.feePolicy()
		if fields.problem != nil {
			r.fail("assetOverrides", fields.problem.Error())
		}
	}
	return fees
}

func (r *fieldReader) feePolicy() EscrowFee {
	ppm := r.feeNumber("ppm")
	if !ppm.IsInt64() {
		r.fail("ppm", "is out of range")
	}
	return EscrowFee{PPM: ppm.Int64(), Base: r.feeNumber("base"), Min: r.feeNumber("min"), Max: r.feeNumber("max")}
}

// feeNumber reads a number, truncated, or an integer in decimal text; 0 when absent.
// A negative one is a problem.
func (r *fieldReader) feeNumber(key string) *big.Int {
	number := new(big.Int)
	if !r.has(key) {
		return number
	}
	text := string(r.raw[key])
	if isText := json.Unmarshal(r.raw[key], &text) == nil; !isText && strings.ContainsAny(text, ".eE") {
		text = truncated(text)
	}
	const maxDigits = 100 // more than any token amount, and no work for big.Int
	if len(text) > maxDigits {
		text = ""
	}
	if _, ok := number.SetString(text, 10); !ok || number.Sign() < 0 {
		r.fail(key, "is no amount")
		return new(big.Int)
	}
	return number
}

// truncated returns the integer part of a JSON number with a point or an exponent; ""
// when it is beyond what others can hold.
func truncated(number string) string {
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return ""
	}
	whole, _ := big.NewFloat(value).Int(nil)
	return whole.String()
}
