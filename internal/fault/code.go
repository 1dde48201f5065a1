package fault

// Code names a kind of failure. The list is complete (spec README, "Error
// codes"); a code that is not here is never sent.
type Code string

// Frames (10).
const (
	InvalidRequest   Code = "invalid_request"
	UnknownMethod    Code = "unknown_method"
	MissingParam     Code = "missing_param"
	RequestCancelled Code = "request_cancelled"
	UnexpectedError  Code = "unexpected_error"
	Busy             Code = "busy"
	PendingSwaps     Code = "pending_swaps"
)

// Any action (10, 20, 30).
const (
	AuthRequired          Code = "auth_required"
	SessionPubkeyMismatch Code = "session_pubkey_mismatch"
	EscrowRoleRequired    Code = "escrow_role_required"
	UnknownAction         Code = "unknown_action"
	InvalidInput          Code = "invalid_input"
)

// Warning (10 §3.3).
const (
	PartialResult Code = "partial_result"
)

// Sign-in, profile, upload (20).
const (
	RelayRequired          Code = "relay_required"
	SessionConnectFailed   Code = "session_connect_failed"
	NostrConnectTimeout    Code = "nostr_connect_timeout"
	NostrConnectIncomplete Code = "nostr_connect_incomplete"
	UnknownOAuthRequest    Code = "unknown_oauth_request"
	InvalidNSec            Code = "invalid_nsec"
	InvalidNPub            Code = "invalid_npub"
	InvalidUploadBase64    Code = "invalid_upload_base64"
	InvalidUpload          Code = "invalid_upload"
	ImageUploadFailed      Code = "image_upload_failed"
)

// Amounts (30 §8.1, 41).
const (
	CurrencyRequired Code = "currency_required"
	AmountRequired   Code = "amount_required"
	InvalidAmount    Code = "invalid_amount"
)

// Listings (40 §15).
const (
	InvalidListingType        Code = "invalid_listing_type"
	InvalidRentOrBuy          Code = "invalid_rent_or_buy"
	ImagesRequired            Code = "images_required"
	InvalidImage              Code = "invalid_image"
	ImageNotFound             Code = "image_not_found"
	InvalidImageURL           Code = "invalid_image_url"
	ImageDownloadFailed       Code = "image_download_failed"
	ImageTooLarge             Code = "image_too_large"
	InvalidImageDataURL       Code = "invalid_image_data_url"
	InvalidImageBase64        Code = "invalid_image_base64"
	PriceRequired             Code = "price_required"
	InvalidPrice              Code = "invalid_price"
	InvalidFrequency          Code = "invalid_frequency"
	MixedCurrencies           Code = "mixed_currencies"
	InvalidCancellationPolicy Code = "invalid_cancellation_policy"
	InvalidDuration           Code = "invalid_duration"
	AddressRequired           Code = "address_required"
	MissingTitle              Code = "missing_title"
	MissingDescription        Code = "missing_description"
	NotFound                  Code = "not_found"
	NotAuthor                 Code = "not_author"
)

// Orders (51).
const (
	ListingNotFound     Code = "listing_not_found"
	ListingUnavailable  Code = "listing_unavailable"
	AvailabilityUnknown Code = "availability_unknown"
	AlreadyCancelled    Code = "already_cancelled"
	OrderNotFound       Code = "order_not_found"
	OrderNotReviewable  Code = "order_not_reviewable"
	ReviewInvalid       Code = "review_invalid"
)

// Messages (60).
const (
	TradeIDRequired              Code = "trade_id_required"
	RecipientRequired            Code = "recipient_required"
	EscrowThreadResolutionFailed Code = "escrow_thread_resolution_failed"
)

// Payment (72, 71).
const (
	SameAccountAsHost             Code = "same_account_as_host"
	BookAndPayFailed              Code = "book_and_pay_failed"
	OrderAmountRequired           Code = "order_amount_required"
	SellerProfileNotFound         Code = "seller_profile_not_found"
	NoMutualEscrow                Code = "no_mutual_escrow"
	SellerEVMAddressNotFound      Code = "seller_evm_address_not_found"
	EscrowServiceNotFound         Code = "escrow_service_not_found"
	PayUnavailable                Code = "pay_unavailable"
	UnsupportedEscrowPaymentToken Code = "unsupported_escrow_payment_token"
	SwapCreationFailed            Code = "swap_creation_failed"
	PaymentContextNotFound        Code = "payment_context_not_found"
	SwapNotFound                  Code = "swap_not_found"
	SwapNotCompleted              Code = "swap_not_completed"
)

// Operator (80).
const (
	EscrowServiceNotOwned   Code = "escrow_service_not_owned"
	EscrowEventQueryFailed  Code = "escrow_event_query_failed"
	EscrowTradeNotAssigned  Code = "escrow_trade_not_assigned"
	EscrowTradeNotActive    Code = "escrow_trade_not_active"
	EscrowTradeTerminal     Code = "escrow_trade_terminal"
	BadgeAwardNotOwned      Code = "badge_award_not_owned"
	BadgeDefinitionNotFound Code = "badge_definition_not_found"
)

// NotImplemented answers methods and actions whose part of the product is still
// to come; the message says so.
const NotImplemented Code = "not_implemented"
