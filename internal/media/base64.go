package media

import (
	"errors"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
)

// decodeBase64 decodes the file of uploadImage. The error is invalid_upload_base64.
func decodeBase64(text string) ([]byte, error) {
	content, err := imagesource.DecodeBase64(text)
	var wrong *imagesource.Base64Error
	if errors.As(err, &wrong) {
		return nil, fault.New(fault.InvalidUploadBase64, "%s", wrong.Message).At("base64").WithHint(wrong.Hint)
	}
	return content, err
}
