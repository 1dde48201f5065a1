package signer

// channel encrypts between a client key and one other key. It writes NIP-44 and
// reads what old signers still write, NIP-04, as well (spec 81, NIP-46).
type channel struct {
	client PrivateKey
	peer   string
	nip44  conversation
}

func newChannel(client PrivateKey, peer string) (channel, error) {
	derived, err := converse(client, peer)
	if err != nil {
		return channel{}, err
	}
	return channel{client: client, peer: peer, nip44: derived}, nil
}

func (c channel) seal(text string) (string, error) { return c.nip44.encrypt(text) }

func (c channel) open(content string) (string, error) {
	text, err := c.nip44.decrypt(content)
	if err == nil {
		return text, nil
	}
	if isNIP04(content) {
		return decryptNIP04(c.client, c.peer, content)
	}
	return "", err
}
