package market

// The kinds of trades (spec 50 §1). Orders, services, selections and reviews are
// addressable, the seller's configuration is replaceable, the others are regular.
const (
	KindOrder = 32122
	// KindOrderTransition is the log of an order's public changes.
	KindOrderTransition = 1326
	// KindStructuredMessage carries one event as JSON in a private message.
	KindStructuredMessage = 1327
	// KindCommitAuthorization is a seller's signature over agreed terms.
	KindCommitAuthorization = 1328
	// KindTradeKeyAuthorization ties a trade key to the buyer behind it.
	KindTradeKeyAuthorization = 1329
	KindReview                = 31555
	// KindSellerConfiguration is the seller's escrow method.
	KindSellerConfiguration   = 17388
	KindEscrowService         = 30303
	KindEscrowServiceSelected = 30302
)

// Role is the part somebody plays in a trade.
type Role string

// The roles of a trade.
const (
	RoleSeller Role = "seller"
	RoleBuyer  Role = "buyer"
	RoleEscrow Role = "escrow"
)

// Stage is how far an order has come. Only commit and cancel may be public.
type Stage string

// The stages of an order.
const (
	StageNegotiate Stage = "negotiate"
	StageCommit    Stage = "commit"
	StageCancel    Stage = "cancel"
)

func (s Stage) known() bool {
	return s == StageNegotiate || s == StageCommit || s == StageCancel
}
