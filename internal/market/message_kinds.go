package market

// Kinds of messaging (NIP-17, NIP-59; spec 60 §1).
const (
	KindSeal        = 13
	KindTextMessage = 14
	// KindSeenReceipt is NIP-18's generic repost elsewhere; inside a gift wrap it
	// always is a receipt.
	KindSeenReceipt = 16
	KindGiftWrap    = 1059
	KindHeartbeat   = 10017
	// KindSeenMessages is reserved: read as an opaque event, never written.
	KindSeenMessages = 30010
)
