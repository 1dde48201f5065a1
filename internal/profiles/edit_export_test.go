package profiles

// MergedContent is the writer of an edited profile's content.
var MergedContent = mergedContent
